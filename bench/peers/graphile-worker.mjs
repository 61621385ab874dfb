// graphile-worker on PostgreSQL. One job a call: the defaults, but for the concurrency and a pool that fits it.
// In bulk: the preset of its page on performance (local queue of 500, completions in batches, 24 at once).
// Its notion of an idempotency key is the job key; in the default mode a second job replaces a waiting one.

import { Logger, makeWorkerUtils, run } from 'graphile-worker';
import pg from 'pg';
import { PAYLOAD, bringIn, consume, idle, nextKey, serve } from './protocol.mjs';

const connectionString = process.argv[2];
const BULK = 1000;
const quiet = new Logger(() => () => {});
const pool = new pg.Pool({ connectionString, max: 64 });
const utils = await makeWorkerUtils({ pgPool: pool, logger: quiet });
await utils.migrate();

const ONE = (workers) => ({ concurrentJobs: workers, maxPoolSize: workers + 1 });
const BATCHED = {
  concurrentJobs: 24,
  maxPoolSize: 25,
  localQueue: { size: 500 },
  completeJobBatchDelay: 0,
  failJobBatchDelay: 0,
};

async function bulk() {
  const specs = Array.from({ length: BULK }, () => ({ identifier: 'noop', payload: PAYLOAD, jobKey: nextKey() }));
  return (await utils.addJobs(specs)).length;
}

const start = (settings, taskList) =>
  run({
    preset: { worker: { connectionString, ...settings } },
    logger: quiet,
    noHandleSignals: true,
    taskList,
  });

async function drain(settings, { ms, pending }) {
  // What autovacuum would have done after so many inserts.
  await pool.query('vacuum analyze graphile_worker._private_jobs');
  let runner;
  return consume({
    ms,
    all: pending,
    start: async (tick) => {
      runner = await start(settings, { noop: async () => {} });
      runner.events.on('job:complete', () => tick());
    },
    stop: () => runner.stop(),
  });
}

await serve({
  async reset() {
    await pool.query('truncate graphile_worker._private_jobs');
    await pool.query('vacuum analyze graphile_worker._private_jobs');
  },
  ...bringIn({ one: () => utils.addJob('noop', PAYLOAD, { jobKey: nextKey() }), bulk, inFlight: 2 }),
  drain_one: (command) => drain(ONE(command.workers), command),
  drain_bulk: (command) => drain(BATCHED, command),
  async latency({ ms, samples }) {
    let runner;
    const enqueue = {
      async prepare(started) {
        runner = await start({ concurrentJobs: 1, maxPoolSize: 10 }, { noop: async (data) => started(data.n) });
      },
      send: (n) => utils.addJob('noop', { ...PAYLOAD, n }, { jobKey: nextKey() }),
      finish: () => runner.stop(),
    };
    return idle({ ms, samples, enqueue });
  },
});
