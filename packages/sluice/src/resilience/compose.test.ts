import { getEventListeners } from "node:events";
import * as fc from "fast-check";
import { expect, it } from "vitest";
import { sleep } from "../clock/sleep.ts";
import { CircuitOpenError, QueueFullError, TimeoutError } from "../errors.ts";
import { Limiter } from "../flow/limiter.ts";
import { type EnclosedWork, setStage, type StagedCall } from "../internal/stage.ts";
import { named } from "../observe/named.ts";
import type { Policy, RunContext, Task, WaitOptions } from "../policy.ts";
import { Mutex } from "../sync/mutex.ts";
import { Semaphore } from "../sync/semaphore.ts";
import { abortCases, type AbortSubject } from "../testing/abort-suite.ts";
import { turn } from "../testing/turn.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { aimd } from "./adaptive-limiter-aimd.ts";
import { AdaptiveLimiter } from "./adaptive-limiter.ts";
import { CircuitBreaker } from "./circuit-breaker.ts";
import { compose } from "./compose.ts";
import { retry } from "./retry.ts";
import type { RetryOptions } from "./retry-options.ts";
import { timeout } from "./timeout.ts";

class Boom extends Error {}

const unavailable = (): Error => Object.assign(new Error("unavailable"), { status: 503 });

/** Writes down who comes in and goes out. */
class Logged implements Policy {
  readonly id: string;
  readonly #log: string[];

  constructor(id: string, log: string[]) {
    this.id = id;
    this.#log = log;
  }

  async run<T>(fn: Task<T>, { signal }: WaitOptions = {}): Promise<T> {
    this.#log.push(`${this.id} in`);
    try {
      return await fn({ signal });
    } finally {
      this.#log.push(`${this.id} out`);
    }
  }
}

it("runs the function within all policies, the first outermost", async () => {
  const log: string[] = [];
  const policy = compose(new Logged("a", log), new Logged("b", log), new Logged("c", log));
  expect(await policy.run(() => (log.push("fn"), 7))).toBe(7);
  expect(log).toEqual(["a in", "b in", "c in", "fn", "c out", "b out", "a out"]);
});

it("calls fn in the turn of the call when no layer has to wait", async () => {
  const policy = compose(timeout(100), retry(), new CircuitBreaker(), new AdaptiveLimiter(aimd()), new Limiter(2));
  let isCalled = false;
  const run = policy.run(() => (isCalled = true));
  expect(isCalled).toBe(true);
  expect(await run).toBe(true);
});

it("hands the function what each layer adds, and one signal, which any layer around it aborts", async () => {
  const clock = new VirtualClock();
  const policy = compose(
    timeout(50, { clock }),
    retry({ clock, random: () => 0, classify: () => "retry" }),
    new Mutex(),
  );
  let tries = 0;
  const seen: unknown[] = [];
  const run = policy.run(
    ({ attempt, idempotencyKey, signal, guard }) => {
      seen.push([attempt, idempotencyKey, typeof guard.release, signal.aborted]);
      if ((tries += 1) === 1) throw new Boom();
      return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason as Error)));
    },
    { idempotencyKey: "order 7" },
  );
  run.catch(() => {});
  await clock.advance(1_000);
  await expect(run).rejects.toThrow(TimeoutError);
  expect(seen[0]).toEqual([1, "order 7", "function", false]);
  expect(seen[1]).toEqual([2, "order 7", "function", false]);
});

it("ends the signal of an attempt when another follows, and when a layer around it ends the call", async () => {
  const clock = new VirtualClock();
  const again = retry({ clock, classify: () => "retry", random: () => 0 });
  const policy = compose(timeout(50, { clock }), again, new CircuitBreaker({ clock }));
  const signals: AbortSignal[] = [];
  const run = policy.run(({ attempt, signal }) => {
    signals.push(signal);
    if (attempt === 1) throw new Boom();
    return "done";
  });
  await clock.advance(10);
  expect(await run).toBe("done");
  expect(signals[0]?.reason).toBeInstanceOf(Boom);
  let seen: AbortSignal | undefined;
  const hung = policy.run(({ signal }) => new Promise(() => (seen = signal)));
  hung.catch(() => {});
  await clock.advance(50);
  await expect(hung).rejects.toThrow(TimeoutError);
  expect(seen?.reason).toBeInstanceOf(TimeoutError);
});

it("never tries again what a layer around the retry has ended", async () => {
  const clock = new VirtualClock();
  const again = retry({ clock, classify: () => "retry", random: () => 0 });
  let calls = 0;
  const run = compose(timeout(50, { clock, mode: "cooperative" }), again).run(({ signal }) => {
    calls += 1;
    return new Promise((_, reject) => signal.addEventListener("abort", () => reject(new Boom())));
  });
  run.catch(() => {});
  await clock.advance(1_000);
  await expect(run).rejects.toThrow(TimeoutError);
  expect([calls, again.stats().retries, again.stats().lateErrors]).toEqual([1, 0, 1]);
});

it("keeps a limiter's slot until the call has ended, and ends it with the limiter and with what is around", async () => {
  const clock = new VirtualClock();
  const limiter = new Limiter(1, { clock, stallMs: Infinity });
  const policy = compose(timeout(50, { clock, mode: "cooperative" }), limiter);
  const start = (): [Promise<unknown>, AbortSignal, () => void] => {
    let call: [AbortSignal, () => void] | undefined;
    const run = policy.run(({ signal }) => new Promise<void>((resolve) => (call = [signal, resolve])));
    run.catch(() => {});
    if (call === undefined) throw new Error("not called at once");
    return [run, ...call];
  };
  const [first, firstSignal, endFirst] = start();
  await clock.advance(50);
  expect(firstSignal.reason).toBeInstanceOf(TimeoutError);
  expect(limiter.running).toBe(1);
  endFirst();
  await first;
  expect(limiter.stats()).toMatchObject({ running: 0, completed: 1 });
  const [second, secondSignal, endSecond] = start();
  const stop = new Boom();
  limiter.abort(stop);
  expect(secondSignal.reason).toBe(stop);
  expect(limiter.running).toBe(1);
  endSecond();
  await second;
  expect(limiter.running).toBe(0);
  await expect(policy.run(() => 1)).rejects.toMatchObject({ code: "CLOSED" });
});

it("finds a call that waits for its own limiter, though all its calls go through a composed one", async () => {
  const clock = new VirtualClock();
  const limiter = new Limiter(1, { clock, stallMs: 100 });
  const policy = compose(retry({ clock, retries: 0 }), limiter);
  for (let call = 0; call < 250; call += 1) await policy.run(() => call); // the next is one of those that are looked at
  const outer = policy.run(() => policy.run(() => 1));
  outer.catch(() => {});
  await clock.advance(1_000);
  await expect(outer).rejects.toMatchObject({ code: "SELF_WAIT" });
});

it("keeps one idempotency key for all that comes of a call, also if two layers retry", async () => {
  const clock = new VirtualClock();
  const again: RetryOptions = { clock, classify: () => "retry", retries: 1 };
  const keys = new Set<string>();
  const attempts: number[] = [];
  const run = compose(retry(again), new Mutex(), retry(again)).run(({ idempotencyKey, attempt }) => {
    keys.add(idempotencyKey);
    attempts.push(attempt);
    throw new Boom();
  });
  run.catch(() => {});
  await clock.runToIdle();
  await expect(run).rejects.toThrow(Boom);
  expect(keys.size).toBe(1);
  expect(attempts).toEqual([1, 2, 1, 2]);
});

it("hands on whatever else a layer of one's own adds, though later layers know nothing of it", async () => {
  interface Tenant extends RunContext {
    readonly tenant: string;
  }
  const tenants = {
    run: <T>(fn: (context: Tenant) => T | PromiseLike<T>, { signal }: WaitOptions = {}) =>
      Promise.resolve(fn({ signal, tenant: "acme" })),
  };
  const call = new AbortController();
  const policy = compose(tenants, retry(), new Limiter(1));
  const seen = await policy.run((context) => ({ ...context, attempt: context.attempt }), { signal: call.signal });
  expect(seen).toMatchObject({ tenant: "acme", attempt: 1 });
});

it("hands the caller's options to each layer", async () => {
  const clock = new VirtualClock();
  const limiter = new Limiter(1, { clock, agingMs: Infinity });
  const policy = compose(timeout(1_000, { clock }), limiter);
  const order: string[] = [];
  const first = policy.run(() => sleep(10, { clock }));
  const low = policy.run(() => order.push("low"), { priority: 1 });
  const high = policy.run(() => order.push("high"), { priority: 2 });
  await clock.advance(20);
  await Promise.all([first, low, high]);
  expect(order).toEqual(["high", "low"]);
});

it("limits by timeoutMs the wait at a layer, not the call", async () => {
  const clock = new VirtualClock();
  const policy = compose(new CircuitBreaker({ clock }), new Semaphore(1, { clock }));
  const long = policy.run(() => sleep(100, { clock }), { timeoutMs: 10 });
  const late = policy.run(() => 1, { timeoutMs: 10 });
  late.catch(() => {});
  await clock.advance(100);
  await expect(late).rejects.toThrow(TimeoutError);
  await long;
});

it("C099: the breaker inside counts each attempt, and ends the retry once it is open", async () => {
  const clock = new VirtualClock();
  const breaker = new CircuitBreaker({ failures: 2, clock });
  const policy = compose(retry({ retries: 5, clock }), breaker);
  let calls = 0;
  const run = policy.run(() => {
    calls += 1;
    throw unavailable();
  });
  run.catch(() => {});
  await clock.runToIdle();
  await expect(run).rejects.toThrow(CircuitOpenError);
  expect(calls).toBe(2);
});

it("F10.5: holds no slot while it waits for the next attempt, if the limit is inside the retry", async () => {
  const clock = new VirtualClock();
  const slots = [new Semaphore(1), new Limiter(1), new AdaptiveLimiter(aimd(), { clock })] as const;
  for (const slot of slots) {
    let tries = 0;
    const run = compose(retry({ clock, random: () => 0.5 }), slot).run(() => {
      if ((tries += 1) === 1) throw unavailable();
    });
    await turn();
    expect(slot.stats()).toMatchObject(slot instanceof Semaphore ? { held: 0 } : { running: 0 });
    await clock.runToIdle();
    await run;
    expect(tries).toBe(2);
  }
});

it("C108: an aborted call that waits at a layer frees its place at once, for the next to wait there", async () => {
  const clock = new VirtualClock();
  const policy = compose(timeout(10_000, { clock }), new Semaphore(1, { maxWaiting: 1, clock }));
  const startedAt: Record<string, number> = {};
  const start = (id: string, signal?: AbortSignal): Promise<void> =>
    policy.run(
      () => {
        startedAt[id] = clock.now();
        return sleep(100, { clock });
      },
      { signal },
    );
  const call = new AbortController();
  const all = [start("a"), start("b", call.signal)];
  await expect(start("x")).rejects.toThrow(QueueFullError);
  await clock.advance(10);
  call.abort(new Boom());
  await expect(all[1]).rejects.toThrow(Boom);
  await clock.advance(10);
  all.push(start("c"));
  await clock.advance(300);
  await Promise.allSettled(all);
  expect(startedAt).toEqual({ a: 0, c: 100 });
});

it("counts for its layers if it is composed again", () => {
  const [a, b, c] = [retry(), new CircuitBreaker(), new Limiter(1)];
  expect(compose(compose(a, b), c).layers).toEqual([a, b, c]);
  expect(compose(a, compose(compose(b), c)).layers).toEqual([a, b, c]);
});

it("leaves nothing on a signal that outlives it", async () => {
  const { signal } = new AbortController();
  const policy = compose(timeout(1_000), retry(), new CircuitBreaker(), new Semaphore(2), new Limiter(2));
  for (let round = 0; round < 3; round += 1) await policy.run((context) => context.signal.aborted, { signal });
  await expect(policy.run(() => Promise.reject(new Boom()), { signal })).rejects.toThrow(Boom);
  expect(getEventListeners(signal, "abort")).toEqual([]);
});

it("tells the names of its layers and what is wrong with their order", () => {
  const policy = compose(new Limiter(1, { name: "slots" }), retry());
  expect(policy.stats()).toEqual({ order: 'limiter "slots" > retry', problems: 1 });
  expect(named().find(({ kind, name }) => kind === "compose" && name.includes("slots"))?.stats).toEqual(policy.stats());
});

it("refuses what is no policy, and to be made of none", () => {
  expect(() => compose(retry(), {} as never)).toThrow("policy 2 must have a method run, got object");
  expect(() => compose(undefined as never)).toThrow("policy 1 must have a method run, got undefined");
  expect(() => (compose as () => unknown)()).toThrow("policies must be at least 1, got 0");
});

it("rejects bad options and aborted signals before any layer hears of the call", async () => {
  const log: string[] = [];
  const policy = compose(new Logged("a", log));
  await expect(policy.run(() => 1, { timeoutMs: -1 })).rejects.toThrow(RangeError);
  await expect(policy.run(() => 1, { signal: AbortSignal.abort(new Boom()) })).rejects.toThrow(Boom);
  expect(log).toEqual([]);
});

type Behaviour = "passes" | "waits" | "refuses" | "fails on the way out" | "again" | "encloses" | "adds";

/** A policy of one behaviour, which it has by a stage and by `run` alike. */
class Model implements Policy {
  readonly behaviour: Behaviour;
  readonly log: string[];
  readonly id: number;
  tries = 0;

  readonly isStaged: boolean;

  static {
    setStage(Model, (model) => {
      if (!model.isStaged) return undefined;
      if (model.behaviour === "encloses") return { enclose: (work) => model.#enclose(work) };
      return {
        hasContext: model.behaviour === "adds",
        enter: (_, around) => (model.behaviour === "waits" ? undefined : model.#enter(around)),
        leave: (_, isFulfilled, result, call) => model.#leave(isFulfilled, result, call),
      };
    });
  }

  constructor(behaviour: Behaviour, id: number, log: string[], isStaged: boolean) {
    this.behaviour = behaviour;
    this.id = id;
    this.log = log;
    this.isStaged = isStaged;
  }

  async run<T>(fn: Task<T>, { signal }: WaitOptions = {}): Promise<T> {
    if (this.behaviour === "waits") await turn();
    const context = this.#enter({ signal }) as RunContext;
    const again = (): Promise<T> => Promise.resolve(fn(context));
    const leave = (isGood: boolean, result: unknown): Promise<unknown> | undefined =>
      this.#leave(isGood, result, { signal, again });
    let result: T;
    try {
      result = await fn(context);
    } catch (error) {
      return ((await leave(false, error)) as T | undefined) ?? Promise.reject(error);
    }
    return ((await leave(true, result)) as T | undefined) ?? result;
  }

  #enter({ signal }: RunContext): unknown {
    this.log.push(`${this.id} in`);
    if (this.behaviour === "refuses") throw new Boom(`refused by ${this.id}`);
    return this.behaviour === "adds" ? { signal, attempt: this.id } : { signal };
  }

  #leave(isFulfilled: boolean, result: unknown, call: StagedCall): Promise<unknown> | undefined {
    this.log.push(`${this.id} out ${isFulfilled} ${String(result)}`);
    if (this.behaviour === "fails on the way out") throw new Boom(`by ${this.id}`);
    if (this.behaviour !== "again" || isFulfilled || (this.tries += 1) > 1) return undefined;
    return call.again({ signal: call.signal });
  }

  #enclose(work: EnclosedWork): Promise<unknown> {
    this.log.push(`${this.id} in`);
    return new Promise((resolve, reject) => {
      work.start(
        { signal: undefined },
        {
          succeed: (value) => {
            this.log.push(`${this.id} out true ${String(value)}`);
            resolve(value);
          },
          fail: (error) => {
            this.log.push(`${this.id} out false ${String(error)}`);
            reject(error);
          },
        },
      );
    });
  }
}

it("makes no difference to a call whether its layers have stages", () => {
  const behaviour = fc.constantFrom<Behaviour>(
    ...(["passes", "waits", "refuses", "fails on the way out", "again", "encloses", "adds"] as const),
  );
  const layer = fc.record({ behaviour, isStaged: fc.boolean() });
  const ends = fc.constantFrom("value", "rejects", "throws", "fails once");
  const plans = fc.asyncProperty(fc.array(layer, { minLength: 1, maxLength: 6 }), ends, async (layers, end) => {
    const play = async (isStaged: (index: number) => boolean): Promise<unknown> => {
      const log: string[] = [];
      let calls = 0;
      const [first, ...others] = layers.map((each, id) => new Model(each.behaviour, id, log, isStaged(id)));
      const run = compose(first as Model, ...others).run((context) => {
        log.push(`fn ${String((context as { attempt?: number }).attempt)}`);
        calls += 1;
        if (end === "throws") throw new Boom("thrown");
        if (end === "rejects" || (end === "fails once" && calls === 1)) return Promise.reject(new Boom("rejected"));
        return 7;
      });
      return [await run.catch(String), log];
    };
    expect(await play((index) => layers[index]?.isStaged === true)).toEqual(await play(() => false));
  });
  return fc.assert(plans, { numRuns: 500 });
});

const subject: AbortSubject = {
  name: "compose(…).run, at a limit",
  open(clock) {
    const slots = new Semaphore(1, { clock });
    const held = [slots.tryAcquire()];
    const policy = compose(new CircuitBreaker({ clock }), new AdaptiveLimiter(aimd(), { clock }), slots);
    return {
      call: (options) => policy.run(() => 1, options),
      satisfy: () => held.shift()?.release(),
      state: () => ({ available: slots.available, waiting: slots.waiting }),
    };
  },
};

for (const { title, run } of abortCases(subject)) it(title, run);
