// RabbitMQ, a quorum queue: a broker, not a job ledger. Publishing is confirmed once the queue has written it to disk.
// Acknowledgements of consumers are not confirmed by the protocol. There is no notion of an idempotency key.

import amqp from 'amqplib';
import { PAYLOAD, PAYLOAD_TEXT, bringIn, consume, idle, serve } from './protocol.mjs';

const QUEUE = 'bench';
const BULK = 1000;
const body = Buffer.from(PAYLOAD_TEXT);
const durable = { persistent: true };
// Without noDelay each small frame waits 40 ms for the acknowledgement of the one before.
const connection = await amqp.connect(`amqp://127.0.0.1:${process.argv[2]}?heartbeat=0`, { noDelay: true });
const channel = await connection.createConfirmChannel();
const declare = () => channel.assertQueue(QUEUE, { durable: true, arguments: { 'x-queue-type': 'quorum' } });
await declare();

const publish = (content) =>
  new Promise((resolve, reject) =>
    channel.sendToQueue(QUEUE, content, durable, (error) => (error ? reject(error) : resolve())),
  );

// Streaming confirms: a thousand are sent at once, then all of their confirms are awaited.
const bulk = () =>
  new Promise((resolve, reject) => {
    let left = BULK;
    const confirmed = (error) => {
      left -= 1;
      if (error) reject(error);
      else if (left === 0) resolve(BULK);
    };
    for (let n = 0; n < BULK; n += 1) channel.sendToQueue(QUEUE, body, durable, confirmed);
  });

// `every` acknowledgements are sent as one.
async function drain({ ms, pending }, prefetch, every) {
  const consumer = await connection.createChannel();
  await consumer.prefetch(prefetch);
  let tag;
  return consume({
    ms,
    all: pending,
    start: async (tick) => {
      let held = 0;
      let seen = 0;
      const take = (message) => {
        if (message === null) return;
        held += 1;
        seen += 1;
        if (held < every && seen < pending) return;
        consumer.ack(message, true);
        tick(held);
        held = 0;
      };
      tag = (await consumer.consume(QUEUE, take)).consumerTag;
    },
    // Acknowledgements have no answer of their own; this call has, and comes after them.
    settle: () => consumer.checkQueue(QUEUE),
    stop: async () => {
      await consumer.cancel(tag);
      await consumer.close();
    },
  });
}

await serve({
  async reset() {
    await channel.deleteQueue(QUEUE);
    await declare();
  },
  ...bringIn({ one: () => publish(body), bulk, inFlight: 2 }),
  drain_one: (command) => drain(command, command.workers, 1),
  drain_bulk: (command) => drain(command, 500, 100),
  async latency({ ms, samples }) {
    const consumer = await connection.createChannel();
    await consumer.prefetch(1);
    const enqueue = {
      async prepare(started) {
        await consumer.consume(QUEUE, (message) => {
          started(JSON.parse(message.content).n);
          consumer.ack(message);
        });
      },
      send: (n) => publish(Buffer.from(JSON.stringify({ ...PAYLOAD, n }))),
      finish: () => consumer.close(),
    };
    return idle({ ms, samples, enqueue });
  },
});
