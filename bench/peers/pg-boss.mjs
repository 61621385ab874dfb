// pg-boss on PostgreSQL. Consumers call fetch and complete in loops, which is faster than its polling work();
// the latency is that of work() at its shortest interval, 0.5 s, since fetch does not wait.
// Its notion of an idempotency key that fits is the job's own id: a second insert of an id does nothing.

import { createHash } from 'node:crypto';
import PgBoss from 'pg-boss';
import { PAYLOAD, bringIn, idle, nextKey, pump, serve } from './protocol.mjs';

const NAME = 'bench';
const BULK = 1000;
const boss = new PgBoss({ connectionString: process.argv[2], max: 64, supervise: false, schedule: false });
boss.on('error', (error) => console.error(error));
await boss.start();
await boss.createQueue(NAME);

function id() {
  const key = nextKey();
  if (key === undefined) return undefined;
  const hex = createHash('md5').update(key).digest('hex');
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

async function bulk() {
  await boss.insert(Array.from({ length: BULK }, () => ({ name: NAME, id: id(), data: PAYLOAD })));
  return BULK;
}

async function drain({ ms, inFlight, batchSize }) {
  // What autovacuum would have done after so many inserts.
  await boss.getDb().executeSql('vacuum analyze pgboss.job');
  const one = async () => {
    const jobs = await boss.fetch(NAME, { batchSize });
    if (jobs.length > 0) await boss.complete(NAME, jobs.map((job) => job.id));
    return jobs.length;
  };
  return pump({ inFlight, ms, one });
}

await serve({
  reset: () => boss.clearStorage(),
  ...bringIn({ one: () => boss.send(NAME, PAYLOAD, { id: id() }), bulk, inFlight: 2 }),
  drain_one: ({ ms, workers }) => drain({ ms, inFlight: workers, batchSize: 1 }),
  drain_bulk: ({ ms }) => drain({ ms, inFlight: 4, batchSize: 100 }),
  async latency({ ms, samples }) {
    let worker;
    const enqueue = {
      async prepare(started) {
        const settings = { pollingIntervalSeconds: 0.5, batchSize: 100 };
        worker = await boss.work(NAME, settings, async (jobs) => jobs.forEach((job) => started(job.data.n)));
      },
      send: (n) => boss.send(NAME, { ...PAYLOAD, n }, { id: id() }),
      finish: () => boss.offWork({ id: worker }),
    };
    // It polls: who arrives meanwhile waits for the same poll, so jobs need not wait for each other.
    return idle({ ms, samples, enqueue, overlapping: true });
  },
});
