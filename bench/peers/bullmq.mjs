// BullMQ on Redis. One Queue, one Worker; jobs are removed when completed, as its guide advises for production.
// Its notion of an idempotency key is a custom jobId: adding a job whose id exists does nothing.

import { Queue, Worker } from 'bullmq';
import { PAYLOAD, bringIn, consume, idle, nextKey, serve } from './protocol.mjs';

const connection = { host: '127.0.0.1', port: Number(process.argv[2]), maxRetriesPerRequest: null };
const NAME = 'bench';
const BULK = 250;
const options = () => ({ jobId: nextKey(), removeOnComplete: true, removeOnFail: true });
const queue = new Queue(NAME, { connection });
await queue.waitUntilReady();

async function bulk() {
  const jobs = Array.from({ length: BULK }, () => ({ name: 'noop', data: PAYLOAD, opts: options() }));
  return (await queue.addBulk(jobs)).length;
}

async function worker(concurrency, processor) {
  const made = new Worker(NAME, processor, { connection, concurrency, autorun: false });
  made.on('error', (error) => console.error(error));
  await made.waitUntilReady();
  return made;
}

await serve({
  absent: { drain_bulk: 'the open source edition has no batches' },
  reset: () => queue.obliterate({ force: true }),
  ...bringIn({ one: () => queue.add('noop', PAYLOAD, options()), bulk, inFlight: 4 }),
  async drain_one({ ms, workers, pending }) {
    const consumer = await worker(workers, async () => {});
    return consume({
      ms,
      all: pending,
      start: (tick) => {
        consumer.on('completed', () => tick());
        consumer.run().catch((error) => console.error(error));
      },
      stop: () => consumer.close(),
    });
  },
  async latency({ ms, samples }) {
    let consumer;
    const enqueue = {
      async prepare(started) {
        consumer = await worker(1, async (job) => started(job.data.n));
        consumer.run().catch((error) => console.error(error));
      },
      send: (n) => queue.add('noop', { ...PAYLOAD, n }, options()),
      finish: () => consumer.close(),
    };
    return idle({ ms, samples, enqueue });
  },
});
