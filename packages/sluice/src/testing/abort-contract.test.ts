import { it } from "vitest";
import { Deadline } from "../clock/deadline.ts";
import { sleep } from "../clock/sleep.ts";
import { TimeoutError } from "../errors.ts";
import { Limiter } from "../flow/limiter.ts";
import { Queue } from "../flow/queue.ts";
import { RateLimiter } from "../pace/rate-limiter.ts";
import type { WaitOptions } from "../policy.ts";
import { CircuitBreaker } from "../resilience/circuit-breaker.ts";
import { KeyedCircuitBreaker } from "../resilience/keyed-circuit-breaker.ts";
import { retry } from "../resilience/retry.ts";
import { timeout } from "../resilience/timeout.ts";
import type { Permit } from "../sync/permit.ts";
import { Semaphore } from "../sync/semaphore.ts";
import { type AbortScene, abortCases, type AbortSubject } from "./abort-suite.ts";

/** Everything in the core that takes a signal. */
const subjects: readonly AbortSubject[] = [
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
    name: "Queue.put",
    open(clock) {
      const queue = new Queue<string>(1, { clock });
      queue.offer("theirs");
      return {
        call: (options) => queue.put("ours", options),
        satisfy: () => queue.poll(),
        state: () => ({ size: queue.size, waiting: queue.stats().waitingProducers }),
        giveBack: () => queue.poll(),
      };
    },
  },
  {
    name: "Queue.take",
    open: (clock) => taking(new Queue<string>(10, { clock }), (queue, options) => queue.take(options)),
  },
  {
    name: "Queue.takeBatch",
    open: (clock) => taking(new Queue<string>(10, { clock }), (queue, options) => queue.takeBatch(1, options)),
  },
  {
    name: "Limiter.run",
    open(clock) {
      const limiter = new Limiter(1, { clock });
      const { fn, finish } = work();
      void limiter.run(fn);
      return {
        call: (options) => limiter.run(nothing, options),
        satisfy: finish,
        state: () => ({ running: limiter.running, waiting: limiter.waiting }),
      };
    },
  },
  {
    name: "Limiter.run with a free slot",
    lacks: { waiting: "a slot is kept until the work has ended", timeoutMs: "it bounds the wait alone" },
    open(clock) {
      const limiter = new Limiter(Infinity, { clock });
      const { fn, finish } = work();
      return {
        call: (options) => limiter.run(fn, options),
        satisfy: finish,
        state: () => ({ running: limiter.running, waiting: limiter.waiting }),
      };
    },
  },
  {
    name: "Limiter.drain",
    open(clock) {
      const limiter = new Limiter(1, { clock });
      const { fn, finish } = work();
      void limiter.run(fn);
      return {
        call: (options) => limiter.drain(options),
        satisfy: finish,
        state: () => ({ running: limiter.running, waiting: limiter.waiting }),
      };
    },
  },
  {
    name: "RateLimiter.take",
    open(clock) {
      const limiter = new RateLimiter({ count: 1, perMs: 1_000, clock });
      limiter.tryTake("key");
      return {
        call: (options) => limiter.take("key", options),
        satisfy: () => clock.advance(1_000),
        state: () => ({ waiting: limiter.stats().waiting }),
      };
    },
  },
  {
    name: "RateLimiter.run",
    open(clock) {
      const limiter = new RateLimiter({ count: 1, perMs: 1_000, clock });
      limiter.tryTake();
      return {
        call: (options) => limiter.run(nothing, options),
        satisfy: () => clock.advance(1_000),
        state: () => ({ waiting: limiter.stats().waiting }),
      };
    },
  },
  {
    name: "sleep",
    lacks: { timeoutMs: "it has a length of its own" },
    open: (clock) => ({
      call: ({ signal }) => sleep(1_000, { signal, clock }),
      satisfy: () => clock.advance(1_000),
      state: () => ({}),
    }),
  },
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
  {
    name: "retry.run between two attempts",
    lacks: { timeoutMs: "nothing is admitted: `deadline` limits it as a whole" },
    open(clock) {
      const waits = { baseMs: 1_000, factor: 1, random: () => 0.9 };
      const policy = retry({ ...waits, retries: Infinity, classify: () => "retry", clock });
      let isUp = false;
      return {
        call: (options) => policy.run(() => (isUp ? "up" : Promise.reject(new Error("down"))), options),
        async satisfy() {
          isUp = true;
          await clock.advance(1_000);
        },
        state: () => ({ running: policy.stats().running, waiting: policy.stats().waiting }),
      };
    },
  },
  {
    name: "retry.run during an attempt",
    lacks: { timeoutMs: "nothing is admitted: `deadline` limits it as a whole" },
    open(clock) {
      const policy = retry({ clock });
      const { fn, finish } = work();
      return {
        call: (options) => policy.run(fn, options),
        satisfy: finish,
        state: () => ({ running: policy.stats().running, waiting: policy.stats().waiting }),
      };
    },
  },
  {
    name: "timeout.run",
    lacks: { timeoutMs: "nothing is admitted: the policy has the limit" },
    open(clock) {
      const policy = timeout(60_000, { clock });
      const { fn, finish } = work();
      return {
        call: (options) => policy.run(fn, options),
        satisfy: finish,
        state: () => ({ waiting: policy.stats().running - policy.stats().abandoned }),
      };
    },
  },
  {
    name: "CircuitBreaker.run",
    lacks: { waiting: "it passes a call or turns it away", timeoutMs: "it never waits" },
    open(clock) {
      const breaker = new CircuitBreaker({ clock });
      const { fn, finish } = work();
      return {
        call: (options) => breaker.run(fn, options),
        satisfy: finish,
        state: () => ({ running: breaker.running, failures: breaker.stats().failures }),
      };
    },
  },
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
];

for (const { title, run } of subjects.flatMap(abortCases)) it(title, run);

function taking(
  queue: Queue<string>,
  take: (queue: Queue<string>, options: WaitOptions) => Promise<unknown>,
): AbortScene {
  return {
    call: (options) => take(queue, options),
    satisfy: () => queue.offer("item"),
    state: () => ({ size: queue.size, waiting: queue.stats().waitingConsumers }),
    giveBack: () => queue.offer("item"),
  };
}

function nothing(): void {}

/** A function whose calls end one by one, the oldest first, whatever their signal says. */
function work(): { readonly fn: () => Promise<void>; readonly finish: () => void } {
  const running: (() => void)[] = [];
  return {
    fn: () => new Promise((resolve) => void running.push(resolve)),
    finish: () => running.shift()?.(),
  };
}
