import { getEventListeners } from "node:events";
import { setImmediate as turn } from "node:timers/promises";
import { expect, it } from "vitest";
import { QueueFullError } from "../errors.ts";
import type { LimiterOptions } from "./limiter/options.ts";
import { Limiter } from "./limiter.ts";

it("C24: turns away by default who finds the line full, before fn is called, for the caller to decide", async () => {
  const { limit, call, outcomes, finish } = full({});
  const refused = call("late");
  await expect(refused).rejects.toMatchObject({ code: "QUEUE_FULL", limit: 1 });
  await expect(refused).rejects.toBeInstanceOf(QueueFullError);
  expect(await finish()).toEqual(["runs", "waits"]);
  expect([outcomes(), limit.stats().rejected, limit.stats().dropped]).toEqual([["runs", "waits"], 1, 0]);
});

it("C25: lets the caller run what finds the line full, at once and in no slot, so that who awaits it is held back", async () => {
  const { limit, call, outcomes, finish } = full({ whenFull: "caller-runs" });
  const work = call("late");
  expect([outcomes(), limit.running, limit.stats().taken, limit.waiting]).toEqual([["runs", "late"], 2, 1, 1]);
  const idle = limit.drain();
  await finish();
  expect(await work).toBe("late");
  await idle;
  expect([outcomes(), limit.stats().completed, limit.stats().taken]).toEqual([["runs", "late", "waits"], 3, 0]);
});

it("calls nothing for the caller once closed, though it would run what finds the line full", async () => {
  const { limit, call, finish } = full({ whenFull: "caller-runs" });
  limit.close();
  await expect(call("late")).rejects.toMatchObject({ code: "CLOSED" });
  await finish();
});

it("C26: drops what comes when it may be lost, and its caller and a count of its own say so", async () => {
  const { limit, call, outcomes, finish } = full({ whenFull: "drop-newest" });
  await expect(call("late")).rejects.toBeInstanceOf(QueueFullError);
  await finish();
  expect([outcomes(), limit.stats().rejected, limit.stats().dropped]).toEqual([["runs", "waits"], 0, 1]);
});

it("C27: drops who has waited longest for who comes, and tells the dropped one's caller", async () => {
  const { limit, call, outcomes, finish, waiter } = full({ whenFull: "drop-oldest" });
  const late = call("late");
  await expect(waiter).rejects.toBeInstanceOf(QueueFullError);
  expect(limit.waiting).toBe(1);
  await finish();
  expect([await late, outcomes(), limit.stats().dropped]).toEqual(["late", ["runs", "late"], 1]);
});

it("drops of those with the lowest priority who has waited longest, never the most urgent", async () => {
  const limit = new Limiter(1, { capacity: 3, whenFull: "drop-oldest" });
  const work = Promise.withResolvers<void>();
  const log: string[] = [];
  const busy = limit.run(() => work.promise);
  const calls = (["urgent", "plain", "low 1"] as const).map((name, index) =>
    limit.run(() => log.push(name), { priority: [9, 0, -1][index] }).catch(() => log.push(`${name} dropped`)),
  );
  calls.push(limit.run(() => log.push("low 2"), { priority: -1 }).catch(() => log.push("low 2 dropped")));
  calls.push(limit.run(() => log.push("new")).catch(() => log.push("new dropped")));
  await turn();
  work.resolve();
  await Promise.all([busy, ...calls]);
  expect(log).toEqual(["low 1 dropped", "low 2 dropped", "urgent", "plain", "new"]);
});

it("has nobody to drop where nobody may wait, and drops who comes", async () => {
  const limit = new Limiter(1, { capacity: 0, whenFull: "drop-oldest" });
  const busy = limit.run(turn);
  await expect(limit.run(() => {})).rejects.toBeInstanceOf(QueueFullError);
  expect(limit.stats()).toMatchObject({ dropped: 1, rejected: 0 });
  await busy;
});

it("drops who comes for nobody of a higher priority", async () => {
  const { call, finish, limit, waiter } = full({ whenFull: "drop-oldest" });
  await expect(limit.run(() => expect.unreachable(), { priority: -1 })).rejects.toBeInstanceOf(QueueFullError);
  const late = call("late");
  await expect(waiter).rejects.toBeInstanceOf(QueueFullError);
  await finish();
  expect([await late, limit.stats().dropped]).toEqual(["late", 2]);
});

it("starts at once who took the place of a heavier one and fits", async () => {
  const limit = new Limiter(2, { capacity: 1, whenFull: "drop-oldest" });
  const work = Promise.withResolvers<void>();
  const busy = limit.run(() => work.promise);
  const heavy = expect(limit.run(() => expect.unreachable(), { weight: 2 })).rejects.toBeInstanceOf(QueueFullError);
  expect(await limit.run(() => "fits")).toBe("fits");
  work.resolve();
  await Promise.all([busy, heavy]);
});

it("drops nobody for who can't wait", async () => {
  const { finish, limit, waiter } = full({ whenFull: "drop-oldest" });
  const { signal } = new AbortController();
  signal.addEventListener = () => {
    throw new Error("a signal of somebody else's");
  };
  await expect(limit.run(() => {}, { signal })).rejects.toThrow("a signal of somebody else's");
  await finish();
  expect([await waiter, limit.stats().dropped]).toEqual(["waits", 0]);
});

it("C28: asks a function for each call that finds the line full, and rejects with what it throws", async () => {
  const asked: unknown[] = [];
  const limit = new Limiter(1, {
    capacity: 0,
    whenFull(options) {
      asked.push(options.priority);
      if (options.priority === undefined) throw new Error("overloaded");
      if (options.priority > 9) return "never" as "wait";
      return options.priority > 0 ? "wait" : "reject";
    },
  });
  const busy = limit.run(turn);
  await expect(limit.run(() => {})).rejects.toThrow("overloaded");
  await expect(limit.run(() => {}, { priority: 0 })).rejects.toBeInstanceOf(QueueFullError);
  await expect(limit.run(() => {}, { priority: 10 })).rejects.toThrow("whenFull must be one of reject, wait");
  expect(await limit.run(() => "waited", { priority: 1 })).toBe("waited");
  await busy;
  expect([asked, limit.running, limit.waiting]).toEqual([[undefined, 0, 10, 1], 0, 0]);
});

it("lets nobody join the line after what its whenFull has changed", async () => {
  const reason = new Error("enough");
  const changes: [(limit: Limiter, controller: AbortController) => void, object][] = [
    [(limit) => limit.close(), { code: "CLOSED" }],
    [(limit) => limit.abort(reason), { code: "CLOSED" }],
    [(limit) => limit.resize(1), { name: "RangeError" }],
    [(_, controller) => controller.abort(reason), reason],
  ];
  for (const policy of ["wait", "caller-runs", "drop-oldest"] as const)
    for (const [change, error] of changes) {
      const controller = new AbortController();
      const whenFull = (): typeof policy => {
        change(limit, controller);
        return policy;
      };
      const limit: Limiter = new Limiter(2, { capacity: 0, whenFull });
      const { promise, resolve } = Promise.withResolvers<void>();
      const runs = limit.run(() => promise, { weight: 2 });
      const { signal } = controller;
      const late = limit.run(() => "called", { weight: 2, signal });
      await expect(late).rejects.toMatchObject(error);
      expect([limit.waiting, getEventListeners(signal, "abort").length]).toEqual([0, 0]);
      resolve();
      await runs;
      await limit.drain();
    }
});

it("F02.3: holds no more in line than its capacity, whoever hands in how much", async () => {
  const limit = new Limiter(2, { capacity: 10 });
  const calls = Array.from({ length: 1_000 }, () => limit.run(turn));
  expect([limit.running, limit.waiting]).toEqual([2, 10]);
  const outcomes = await Promise.allSettled(calls);
  expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(12);
  expect(limit.stats()).toMatchObject({ completed: 12, rejected: 988 });
});

it("C11: bounds what runs and what waits, and says what becomes of the rest", async () => {
  const pool = new Limiter(10, { capacity: 1_000, whenFull: "caller-runs" });
  let [running, most, ran] = [0, 0, 0];
  const task = async (): Promise<void> => {
    most = Math.max(most, (running += 1));
    await turn();
    running -= 1;
    ran += 1;
  };
  for (let call = 0; call < 1_010; call += 1) void pool.run(task);
  expect([pool.running, pool.waiting]).toEqual([10, 1_000]);
  await pool.run(task);
  await pool.drain();
  expect([most, ran]).toEqual([11, 1_011]);
});

interface Full {
  readonly limit: Limiter;
  /** Of the call that waits. */
  readonly waiter: Promise<string>;
  readonly call: (name: string) => Promise<string>;
  /** Who has been started. */
  readonly outcomes: () => string[];
  /** Ends all, one by one. */
  readonly finish: () => Promise<string[]>;
}

/** One runs, one waits, and that is all there may be. */
function full(options: Pick<LimiterOptions, "whenFull">): Full {
  const limit = new Limiter(1, { capacity: 1, ...options });
  const started: string[] = [];
  const running: (() => void)[] = [];
  const call = (name: string): Promise<string> =>
    limit.run(() => {
      started.push(name);
      return new Promise((resolve) => void running.push(() => resolve(name)));
    });
  void call("runs");
  const waiter = call("waits");
  waiter.catch(() => {}); // where it is dropped, the test looks at it later
  return {
    limit,
    waiter,
    call,
    outcomes: () => [...started],
    async finish() {
      while (running.length > 0) {
        running.shift()?.();
        await turn();
      }
      return [...started];
    },
  };
}
