// What every driver of a peer shares: the conversation with the harness, and the loops that keep calls in flight.
//
// The harness writes one JSON command a line on stdin. A driver answers with lines on stdout: {"begin":true} when the
// measured part starts, {"end":true} when it is over (the harness reads CPU times at both), then {"done":{…}}.
// A call that the peer does not have is answered with {"absent":"why"}, a failure with {"error":"what"}.

import { createInterface } from 'node:readline';

// A JSON document of exactly 150 bytes: {"order":"xxx…"}.
export const PAYLOAD = { order: 'x'.repeat(138) };
export const PAYLOAD_TEXT = JSON.stringify(PAYLOAD);
if (PAYLOAD_TEXT.length !== 150) throw new Error('the payload is not 150 bytes');

const run = process.pid.toString(36) + Date.now().toString(36);
let serial = 0;

// A new key for every second job, nothing for the others.
export function nextKey() {
  serial += 1;
  return serial % 2 === 0 ? `${run}-${serial}` : undefined;
}

export const now = () => performance.now();
export const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const say = (line) => process.stdout.write(JSON.stringify(line) + '\n');

export class Absent extends Error {}

// Marks the measured part.
export const mark = {
  begin: () => say({ begin: true }),
  end: () => say({ end: true }),
};

// Answers commands until stdin ends. `peer` has a function for each command; `prepare` has been awaited before.
export async function serve(peer) {
  say({ ready: true });
  for await (const line of createInterface({ input: process.stdin })) {
    const command = JSON.parse(line);
    try {
      if (!peer[command.do]) throw new Absent(peer.absent?.[command.do] ?? 'the peer has no such call');
      say({ done: (await peer[command.do](command)) ?? {} });
    } catch (error) {
      say(error instanceof Absent ? { absent: error.message } : { error: String(error?.stack ?? error) });
    }
  }
  process.exit(0);
}

// The p-th share of a sorted list.
function share(sorted, p) {
  return sorted.length === 0 ? null : sorted[Math.min(sorted.length - 1, Math.floor(p * sorted.length))];
}

export function summary(jobs, began, ended, calls) {
  calls.sort((a, b) => a - b);
  return { jobs, seconds: (ended - began) / 1000, p50_ms: share(calls, 0.5), p99_ms: share(calls, 0.99) };
}

// Keeps `inFlight` calls under way for `ms`; `one` makes a call and answers how many jobs it moved. A call that moves
// none means that nothing is left: its loop ends. Calls that are under way at the end are waited for, and count with
// the time they take.
export async function pump({ inFlight, ms, one }) {
  const calls = [];
  let jobs = 0;
  let last = 0;
  mark.begin();
  const began = now();
  const deadline = began + ms;
  const loop = async () => {
    for (;;) {
      const from = now();
      if (from >= deadline) return;
      const moved = await one();
      if (moved === 0) return;
      last = now();
      jobs += moved;
      calls.push(last - from);
    }
  };
  await Promise.all(Array.from({ length: inFlight }, loop));
  mark.end();
  return { ...summary(jobs, began, last, calls), total: jobs };
}

// The commands that bring jobs in. `one` enqueues a job; `bulk` enqueues as many in a call as suits the peer and answers how
// many went in; `inFlight` is how many of its calls are under way at once.
export function bringIn({ one, bulk, inFlight }) {
  const single = async () => {
    await one();
    return 1;
  };
  return {
    enqueue: ({ in_flight, ms }) => pump({ inFlight: in_flight, ms, one: single }),
    bulk: ({ ms }) => pump({ inFlight, ms, one: bulk }),
    async fill({ jobs }) {
      let filled = 0;
      while (filled < jobs) {
        const moved = await bulk();
        if (moved === 0) throw new Error('nothing went in');
        filled += moved;
      }
      return { total: filled };
    },
  };
}

// Waits until `count()` reaches `all` or `ms` have passed, then stops the consumer and answers what was measured.
// The consumer calls `tick()` for each job that it has finished; `settle` makes sure that the server knows it.
export async function consume({ ms, all, start, stop, settle = async () => {} }) {
  let jobs = 0;
  let over;
  const finished = new Promise((resolve) => (over = resolve));
  let deadline = Infinity;
  const tick = (n = 1) => {
    jobs += n;
    if (jobs >= all || now() >= deadline) over();
  };
  mark.begin();
  const began = now();
  deadline = began + ms;
  const timer = setTimeout(over, ms);
  await start(tick);
  await finished;
  clearTimeout(timer);
  const measured = jobs;
  await settle();
  const ended = now();
  mark.end();
  await stop();
  return { ...summary(measured, began, ended, []), total: jobs };
}

// One job at a time on an idle queue: `enqueue(send)` is called with a number and the consumer calls `started(n)`.
// Between two jobs the queue rests for a moment.
export async function idle({ ms, samples, enqueue, overlapping = false }) {
  const sent = new Map();
  const waits = [];
  let woken = () => {};
  const started = (n) => {
    const from = sent.get(n);
    if (from === undefined) return;
    sent.delete(n);
    waits.push(now() - from);
    woken();
  };
  await enqueue.prepare(started);
  const deadline = now() + ms;
  mark.begin();
  for (let n = 0; n < samples && now() < deadline; n += 1) {
    const served = overlapping ? null : new Promise((resolve) => (woken = resolve));
    sent.set(n, now());
    await enqueue.send(n);
    if (served) await Promise.race([served, pause(5000)]);
    await pause(2 + Math.random() * (overlapping ? 40 : 3));
  }
  const patience = now() + 3000;
  while (sent.size > 0 && now() < patience) await pause(20);
  mark.end();
  await enqueue.finish();
  return { jobs: waits.length, seconds: ms / 1000, waits_ms: waits, unserved: sent.size };
}
