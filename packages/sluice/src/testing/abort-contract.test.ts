import { existsSync, globSync, readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { Deadline } from "../clock/deadline.ts";
import { TimeoutError } from "../errors.ts";
import { Broadcast } from "../flow/broadcast.ts";
import { forEachLimit } from "../flow/for-each-limit.ts";
import { mapLimitSettled } from "../flow/map-limit-settled.ts";
import { mapLimit } from "../flow/map-limit.ts";
import { mapStream } from "../flow/map-stream.ts";
import { pipeline } from "../flow/pipeline.ts";
import { Queue } from "../flow/queue.ts";
import type { Reservation } from "../flow/reserve.ts";
import { aborting, taking } from "../flow/select-clause.ts";
import { select } from "../flow/select.ts";
import { KeyedCircuitBreaker } from "../resilience/keyed-circuit-breaker.ts";
import type { Permit } from "../sync/permit.ts";
import { Semaphore } from "../sync/semaphore.ts";
import { abortCases, type AbortSubject } from "./abort-suite.ts";

/** By source file: what takes a signal, and isn't held to the suite in the test beside it. */
const subjects: Readonly<Record<string, readonly AbortSubject[]>> = {
  "clock/deadline.ts": [
    {
      name: "Deadline.signal",
      lacks: { timeoutMs: "it is a limit itself" },
      open: (clock) => ({
        async call({ signal }) {
          const deadline = Deadline.after(1_000, { signal, clock }).signal;
          if (!deadline.aborted) await new Promise((resolve) => deadline.addEventListener("abort", resolve));
          if (!(deadline.reason instanceof TimeoutError)) throw deadline.reason;
        },
        satisfy: () => clock.advance(1_000),
        state: () => ({}),
      }),
    },
  ],
  "flow/broadcast-subscription.ts": [
    {
      name: "Subscription.take",
      open(clock) {
        const topic = new Broadcast<number>({ clock });
        const sub = topic.subscribe({ capacity: 1_000 });
        return {
          call: (options) => sub.take(options),
          satisfy: () => topic.offer(1),
          state: () => ({ size: sub.size, waiting: sub.stats().waitingReaders }),
          giveBack: () => topic.offer(1),
        };
      },
    },
  ],
  "flow/lanes.ts": [
    mapping("mapLimit", mapLimit),
    mapping("mapLimitSettled", mapLimitSettled),
    mapping("forEachLimit", forEachLimit),
    mapping("mapStream.next", async (items, concurrency, fn, options) =>
      mapStream(items, concurrency, fn, options).next(),
    ),
  ],
  "flow/pipeline-flow.ts": [
    mapping("Pipeline.forEach", async (items, workers, fn, options) =>
      pipeline(items, options).stage("only", fn, { workers, ordered: true, buffer: 0 }).forEach(nothing),
    ),
  ],
  "flow/consume.ts": [
    {
      name: "Queue.consume",
      lacks: { timeoutMs: "it ends with its queue" },
      open(clock) {
        const queue = new Queue<number>(1, { clock });
        return {
          call: (options) => queue.consume(nothing, options),
          satisfy: () => queue.close(),
          state: () => ({ waiting: queue.stats().waitingConsumers }),
        };
      },
    },
  ],
  "flow/queue-contract.ts": [
    {
      name: "Queue.reserve",
      open(clock) {
        const queue = new Queue<number>(1, { clock });
        const held = [queue.tryReserve()];
        return {
          async call(options) {
            const place = await queue.reserve(options);
            held.push(place);
            return place;
          },
          satisfy: () => held.shift()?.release(),
          state: () => ({
            size: queue.size,
            reserved: queue.stats().reserved,
            waiting: queue.stats().waitingProducers,
          }),
          giveBack: (place) => (place as Reservation<number>).release(),
        };
      },
    },
  ],
  "flow/select-clause.ts": [
    {
      name: "select of an abort",
      open(clock) {
        const [stop, queue] = [new AbortController(), new Queue<number>(1, { clock })];
        return {
          call: (options) => select({ stop: aborting(stop.signal), got: taking(queue) }, { clock, ...options }),
          satisfy: () => stop.abort(),
          state: () => ({ waiting: queue.stats().waitingConsumers }),
        };
      },
    },
  ],
  "resilience/keyed-circuit-breaker.ts": [
    {
      name: "KeyedCircuitBreaker.run",
      lacks: { waiting: "it passes a call or turns it away", timeoutMs: "it never waits" },
      open(clock) {
        const breakers = new KeyedCircuitBreaker({ clock });
        const { fn, finish } = work();
        return {
          call: (options) => breakers.run("key", fn, options),
          satisfy: finish,
          state: () => ({}),
        };
      },
    },
  ],
  "sync/permit-pool.ts": [
    {
      name: "Semaphore.acquire",
      open(clock) {
        const sem = new Semaphore(1, { clock });
        const held = [sem.tryAcquire()];
        return {
          async call(options) {
            const permit = await sem.acquire(options);
            held.push(permit);
            return permit;
          },
          satisfy: () => held.shift()?.release(),
          state: () => ({ available: sem.available, waiting: sem.waiting }),
          giveBack: (permit) => (permit as Permit).release(),
        };
      },
    },
    {
      name: "Semaphore.run",
      open(clock) {
        const sem = new Semaphore(1, { clock });
        const held = sem.tryAcquire();
        return {
          call: (options) => sem.run(nothing, options),
          satisfy: () => held?.release(),
          state: () => ({ available: sem.available, waiting: sem.waiting }),
        };
      },
    },
    {
      name: "Semaphore.drain",
      open(clock) {
        const sem = new Semaphore(1, { clock });
        const held = sem.tryAcquire();
        return {
          call: (options) => sem.drain(options),
          satisfy: () => held?.release(),
          state: () => ({ available: sem.available, waiting: sem.waiting }),
        };
      },
    },
  ],
};

for (const { title, run } of Object.values(subjects).flat().flatMap(abortCases)) it(title, run);

const root = "packages/sluice/src/";
const takers = globSync(`${root}{clock,sync,flow,pace,scope,share,resilience,actor}/*.ts`).filter(
  (file) => /\bcheck(Wait|Signal)\(/.test(readFileSync(file, "utf8")) && !/\.[a-z-]+\.ts$/.test(file),
);

it.each(takers)("%s, which takes a signal, is held to the suite", (file) => {
  const test = file.replace(/\.ts$/, ".test.ts");
  const beside = existsSync(test) && readFileSync(test, "utf8").includes("abortCases(");
  expect(beside || subjects[file.slice(root.length)] !== undefined).toBe(true);
});

function nothing(): void {}

/** A function whose calls end one by one, the oldest first, whatever their signal says. */
function work(): { readonly fn: () => Promise<void>; readonly finish: () => void } {
  const running: (() => void)[] = [];
  return {
    fn: () => new Promise((resolve) => void running.push(resolve)),
    finish: () => running.shift()?.(),
  };
}

/** A map over one item, whose call ends when it is told to, or at the abort. */
function mapping(name: string, map: (...args: Parameters<typeof forEachLimit>) => Promise<unknown>): AbortSubject {
  return {
    name,
    lacks: { timeoutMs: "a signal with a deadline is one" },
    open() {
      const { fn, finish } = work();
      let running = 0;
      return {
        call: (options) =>
          map(
            [1],
            1,
            async (_, { signal }) => {
              running += 1;
              signal.addEventListener("abort", () => (running -= 1));
              await fn();
              if (!signal.aborted) running -= 1;
            },
            options,
          ),
        satisfy: finish,
        state: () => ({ running }),
      };
    },
  };
}
