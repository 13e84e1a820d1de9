import { AsyncLocalStorage } from "node:async_hooks";
import { getEventListeners } from "node:events";
import { isDeepStrictEqual } from "node:util";
import * as fc from "fast-check";
import { expect, it } from "vitest";
import { sleep } from "../clock/sleep.ts";
import { KeyCollisionError, SelfWaitError, TimeoutError } from "../errors.ts";
import { isContextFree } from "../internal/async-context.ts";
import { namedEntries } from "../internal/names.ts";
import { abortCases, type AbortSubject } from "../testing/abort-suite.ts";
import { turn } from "../testing/turn.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { loadMany } from "./load-many.ts";
import { type LoadSignal, SingleFlight, singleFlight } from "./single-flight.ts";

const subject: AbortSubject = {
  name: "SingleFlight.load",
  open(clock) {
    const loads: (() => void)[] = [];
    const flights = new SingleFlight(() => new Promise<void>((resolve) => void loads.push(resolve)), { clock });
    return {
      call: (options) => flights.load("key", options),
      satisfy: () => loads.pop()?.(),
      state: () => ({ waiters: flights.stats().waiters, joinable: Number(flights.has("key")) }),
    };
  },
};

// With a limit of 0 no load is ever there: what "tries once" means here has a test of its own.
for (const { title, run } of abortCases(subject)) if (!title.includes("tries once")) it(title, run);

it("starts and joins nothing with a limit of 0", async () => {
  const { flights, loads } = stage();
  await expect(flights.load("a", { timeoutMs: 0 })).rejects.toBeInstanceOf(TimeoutError);
  expect(loads).toHaveLength(0);
  const first = flights.load("a");
  await expect(flights.load("a", { timeoutMs: 0 })).rejects.toBeInstanceOf(TimeoutError);
  loads[0]?.resolve("value");
  await expect(first).resolves.toBe("value");
});

it("S03: three requests that miss one key make one load, where each for itself makes three", async () => {
  const { flights, loads } = stage();
  const answers = ["key", "key", "key"].map((key) => flights.load(key));
  expect([loads.length, flights.stats()]).toMatchObject([1, { flights: 1, waiters: 3, started: 1, joined: 2 }]);
  loads[0]?.resolve("value");
  expect(await Promise.all(answers)).toEqual(["value", "value", "value"]);
});

it("J19: 300 requests of one key within 50 ms make one load, though none has data yet", async () => {
  const clock = new VirtualClock();
  let count = 0;
  const flights = singleFlight(
    async (key: string) => {
      count += 1;
      await sleep(100, { clock });
      return key;
    },
    { clock },
  );
  const all: Promise<string>[] = [];
  for (let i = 0; i < 300; i += 1) {
    all.push(flights.load("key"));
    await clock.advance(1 / 6);
  }
  await clock.advance(100);
  expect(new Set(await Promise.all(all))).toEqual(new Set(["key"]));
  expect([count, flights.has("key")]).toEqual([1, false]);
});

it("J20: all who wait share a failure, and the next caller loads anew", async () => {
  const { flights, loads } = stage();
  const both = Promise.allSettled([flights.load("a"), flights.load("a")]);
  const failure = new Error("down");
  loads[0]?.reject(failure);
  expect(await both).toMatchObject([{ reason: failure }, { reason: failure }]);
  const next = flights.load("a");
  loads[1]?.resolve("up");
  await expect(next).resolves.toBe("up");
});

it("F12.1: a failing load leaves no entry behind, whether it throws, rejects or is given up", async () => {
  const clock = new VirtualClock();
  const ways: Record<string, () => Promise<string>> = {
    throws() {
      throw new Error("thrown");
    },
    rejects: () => Promise.reject(new Error("rejected")),
    hangs: () => new Promise(() => {}),
  };
  const flights = new SingleFlight((way: string) => ways[way]?.() ?? "", { clock });
  for (const way of ["throws", "rejects"]) await expect(flights.load(way)).rejects.toThrow(/thrown|rejected/);
  const given = flights.load("hangs", { timeoutMs: 5 });
  const settled = expect(given).rejects.toBeInstanceOf(TimeoutError);
  await clock.advance(5);
  await settled;
  expect(Object.keys(ways).map((way) => flights.has(way))).toEqual([false, false, false]);
});

it("J21: a synchronous throw is a rejection, also for a caller who comes back from within", async () => {
  const flights: SingleFlight<string, string> = new SingleFlight((key: string): Promise<string> => {
    inner = flights.load(key);
    throw new Error("broken");
  });
  let inner: Promise<string> | undefined;
  await expect(flights.load("a")).rejects.toThrow("broken");
  await expect(inner).rejects.toBeInstanceOf(SelfWaitError);
  expect(flights.stats()).toMatchObject({ flights: 0, waiters: 0 });
});

it("J21: a load that was forgotten doesn't remove its successor when it ends", async () => {
  const { flights, loads } = stage();
  const old = flights.load("a");
  flights.forget("a");
  const fresh = flights.load("a");
  loads[0]?.resolve("old");
  await expect(old).resolves.toBe("old");
  expect(flights.has("a")).toBe(true);
  const joined = flights.load("a");
  loads[1]?.resolve("fresh");
  expect(await Promise.all([fresh, joined])).toEqual(["fresh", "fresh"]);
  expect(flights.stats()).toMatchObject({ flights: 0, started: 2, joined: 1 });
});

it("C054: the leader's abort neither ends the load nor lets another begin", async () => {
  const clock = new VirtualClock();
  const { flights, loads } = stage({ clock });
  const leader = new AbortController();
  const answers = [flights.load("a", { signal: leader.signal }), flights.load("a"), flights.load("a")];
  const first = expect(answers[0]).rejects.toBe("left");
  await clock.advance(10);
  leader.abort("left");
  await first;
  await clock.advance(10);
  answers.push(flights.load("a"));
  loads[0]?.resolve("value");
  expect(await Promise.all(answers.slice(1))).toEqual(["value", "value", "value"]);
  expect([loads.length, loads[0]?.signal.aborted]).toEqual([1, false]);
});

it("C055: who comes after all have left gets a load of their own, not the end of the dying one", async () => {
  const clock = new VirtualClock();
  const { flights, loads } = stage({ clock });
  const a = new AbortController();
  const given = expect(flights.load("a", { signal: a.signal })).rejects.toBe("a left");
  await clock.advance(10);
  a.abort("a left");
  await given;
  expect(flights.stats()).toMatchObject({ flights: 1, abandoned: 1, waiters: 0 });
  await clock.advance(10);
  const b = flights.load("a", { signal: new AbortController().signal });
  loads[0]?.reject(a.signal.reason);
  await turn();
  expect(flights.has("a")).toBe(true); // the dying one has not taken it along
  loads[1]?.resolve("fresh");
  await expect(b).resolves.toBe("fresh");
});

it("C056: the load's signal lives until the last waiter leaves, and aborts with that one's reason", async () => {
  const clock = new VirtualClock();
  const { flights, loads } = stage({ clock });
  const [first, second] = [new AbortController(), new AbortController()];
  const both = Promise.allSettled([first, second].map(({ signal }) => flights.load("a", { signal })));
  await clock.advance(10);
  first.abort("first");
  await clock.advance(5);
  expect(loads[0]?.signal.aborted).toBe(false);
  await clock.advance(5);
  second.abort("second");
  expect(loads[0]?.signal.reason).toBe("second");
  expect(await both).toMatchObject([{ reason: "first" }, { reason: "second" }]);
});

it("J24: an impatient caller's limit ends no one else's load, and the load has a limit of its own", async () => {
  const clock = new VirtualClock();
  const { flights, loads } = stage({ clock, timeoutMs: 100 });
  const hasty = expect(flights.load("a", { timeoutMs: 10 })).rejects.toMatchObject({ timeoutMs: 10 });
  const others = Promise.allSettled([flights.load("a"), flights.load("a")]);
  await clock.advance(10);
  await hasty;
  expect(loads[0]?.signal.aborted).toBe(false);
  await clock.advance(90);
  expect(await others).toMatchObject([{ reason: { timeoutMs: 100 } }, { reason: { timeoutMs: 100 } }]);
  expect(loads[0]?.signal.reason).toBeInstanceOf(TimeoutError);
  expect([flights.has("a"), flights.stats()]).toMatchObject([false, { flights: 1, abandoned: 1, waiters: 0 }]);
  loads[0]?.reject(new Error("late, and nobody's"));
  await turn();
  expect(flights.stats()).toMatchObject({ flights: 0, abandoned: 0 });
});

it("a caller without a signal keeps the load alive, whoever leaves", () => {
  const { flights, loads } = stage();
  const call = new AbortController();
  void flights.load("a");
  flights.load("a", { signal: call.signal }).catch(() => {});
  call.abort();
  expect([loads[0]?.signal.aborted, flights.stats().waiters]).toEqual([false, 1]);
});

it("doesn't abort a load that has ended when its last caller leaves in the turn of the end", async () => {
  const { flights, loads } = stage();
  const call = new AbortController();
  const answer = flights.load("a", { signal: call.signal });
  const { signal } = loads[0] ?? {};
  loads[0]?.resolve("value");
  await Promise.resolve();
  call.abort("late");
  await Promise.allSettled([answer]);
  expect([signal?.aborted, flights.stats().flights]).toEqual([false, 0]);
});

it("F12.3: a key that is never idle gets a newer load once the one under way is too old to join", async () => {
  const clock = new VirtualClock();
  const { flights, loads } = stage({ clock, maxJoinAgeMs: 50 });
  const answers = [flights.load("a")];
  for (const _ of [1, 2]) {
    await clock.advance(25);
    answers.push(flights.load("a"));
  }
  expect([loads.length, flights.stats().oldestMs]).toEqual([1, 50]);
  await clock.advance(1);
  expect(flights.has("a")).toBe(false);
  answers.push(flights.load("a"));
  expect([loads.length, flights.stats()]).toMatchObject([2, { flights: 2, oldestMs: 51 }]);
  loads[0]?.resolve("old");
  await turn();
  answers.push(flights.load("a")); // the old one's end hasn't removed the newer
  loads[1]?.resolve("new");
  expect(await Promise.all(answers)).toEqual(["old", "old", "old", "new", "new"]);
});

it("F12.2: gives a failure to all who joined, or with retryForFollowers one more try; the leader has the first error", async () => {
  const { flights, loads } = stage({ retryForFollowers: true });
  const all = Promise.allSettled([flights.load("a"), flights.load("a"), flights.load("a")]);
  loads[0]?.reject(new Error("blip"));
  await turn();
  expect(flights.stats()).toMatchObject({ flights: 1, waiters: 2, started: 1 });
  const late = flights.load("a");
  expect(loads).toHaveLength(2);
  loads[1]?.resolve("value");
  expect(await all).toMatchObject([{ reason: { message: "blip" } }, { value: "value" }, { value: "value" }]);
  await expect(late).resolves.toBe("value");
  expect([flights.has("a"), flights.stats().flights]).toEqual([false, 0]);
});

it("tries only once more for followers, and not at all if none is left", async () => {
  const { flights, loads } = stage({ retryForFollowers: true });
  const all = Promise.allSettled([flights.load("a"), flights.load("a")]);
  loads[0]?.reject("first");
  await turn();
  loads[1]?.reject("second");
  expect(await all).toMatchObject([{ reason: "first" }, { reason: "second" }]);
  expect([loads.length, flights.stats().flights]).toEqual([2, 0]);

  const call = new AbortController();
  const both = Promise.allSettled([flights.load("a"), flights.load("a", { signal: call.signal })]);
  loads[2]?.reject("third");
  await Promise.resolve(); // it has failed, and the second try is about to start
  call.abort("left");
  expect(await both).toMatchObject([{ reason: "third" }, { reason: "left" }]);
  expect([loads.length, flights.has("a"), flights.stats().flights]).toEqual([3, false, 0]);

  await expect(failing(flights.load("a"), () => loads[3]?.reject("alone"))).rejects.toBe("alone");
  expect(loads).toHaveLength(4);
});

it("F12.5: tells in development that one key stands for different inputs", async () => {
  const loads: string[] = [];
  const flights = singleFlight(
    async (input: { readonly id: number; readonly tenant: string }) => {
      loads.push(input.tenant);
      await turn();
      return input.tenant;
    },
    { keyOf: ({ id }) => id, isSame: isDeepStrictEqual },
  );
  const a = flights.load({ id: 1, tenant: "a" });
  const collision = await flights.load({ id: 1, tenant: "b" }).catch((error: unknown) => error);
  expect(collision).toBeInstanceOf(KeyCollisionError);
  expect(collision).toMatchObject({ code: "KEY_COLLISION", key: 1 });
  expect(await Promise.all([a, flights.load({ id: 1, tenant: "a" })])).toEqual(["a", "a"]);
  expect(loads).toEqual(["a"]);
});

it("F12.4: of two orders with one key one is made, so what changes something is no load; isSame tells of them", async () => {
  interface Order {
    readonly customer: string;
    readonly pieces: number;
  }
  const orders = [1, 2].map((pieces): Order => ({ customer: "ann", pieces }));
  const made: number[] = [];
  const make = ({ pieces }: Order): number => made.push(pieces);
  const keyOf = ({ customer }: Order): string => customer;
  expect(await loadMany(singleFlight(make, { keyOf }), orders)).toMatchObject([{ value: 1 }, { value: 1 }]);
  expect(made).toEqual([1]);
  const told = await loadMany(singleFlight(make, { keyOf, isSame: isDeepStrictEqual }), orders);
  expect(told).toMatchObject([{ value: 2 }, { reason: { code: "KEY_COLLISION" } }]);
});

it("J22: shares by what keyOf says, and nothing else", async () => {
  const flights = singleFlight(async (input: readonly string[]) => input.join(), { keyOf: (input) => input.join("|") });
  expect(await Promise.all([flights.load(["a", "de"]), flights.load(["a", "fr"]), flights.load(["a", "de"])])).toEqual([
    "a,de",
    "a,fr",
    "a,de",
  ]);
  expect(flights.stats()).toMatchObject({ started: 2, joined: 1 });
});

it("a load that asks for its own key, itself or by way of others, is refused rather than hung", async () => {
  const next: Record<string, string> = { a: "b", b: "c", c: "a", self: "self" };
  const flights: SingleFlight<string, string> = singleFlight(async (key: string): Promise<string> => {
    await turn();
    return flights.load(next[key] ?? "");
  });
  await expect(flights.load("self")).rejects.toBeInstanceOf(SelfWaitError);
  await expect(flights.load("a")).rejects.toBeInstanceOf(SelfWaitError);
  expect(flights.stats()).toMatchObject({ flights: 0, waiters: 0 });
});

it("finds the ring of any number of loads, however many ways lead round, and takes no detour for a ring", async () => {
  const flights: SingleFlight<number, number> = singleFlight(async (key: number): Promise<number> => {
    await turn();
    if (key === 0) return flights.load(length);
    if (key >= length) return key;
    return Math.max(...(await Promise.all([key - 1, Math.max(0, key - 2)].map((next) => flights.load(next)))));
  });
  let length = 40;
  await expect(flights.load(39)).resolves.toBe(40);
  length = 20_000;
  const chain: SingleFlight<number, number> = singleFlight(async (key: number): Promise<number> => {
    if (key > 0) await Promise.resolve();
    return chain.load(key === 0 ? length : key - 1);
  });
  await expect(chain.load(length)).rejects.toBeInstanceOf(SelfWaitError);
});

it("two loads that come to wait for each other are told, though neither began the other", async () => {
  const both = Promise.withResolvers<void>();
  const one: SingleFlight<string, unknown> = singleFlight(() => both.promise.then(() => other.load("x")));
  const other: SingleFlight<string, unknown> = singleFlight(() => both.promise.then(() => one.load("x")));
  const results = Promise.allSettled([one.load("x"), other.load("x")]);
  both.resolve();
  expect(await results).toMatchObject([{ reason: { code: "SELF_WAIT" } }, { reason: { code: "SELF_WAIT" } }]);
});

it.runIf(isContextFree())("a load that waits no more for another is not in a ring with it", async () => {
  const leave = new AbortController();
  const steps = Array.from({ length: 2 }, () => Promise.withResolvers<void>());
  const flights: SingleFlight<string, string> = singleFlight(async (key: string) => {
    if (key === "a") {
      await flights.load("b", { signal: leave.signal }).catch(() => {});
      await steps[1]?.promise;
      return "a";
    }
    await steps[0]?.promise;
    return `b ${await flights.load("a")}`;
  });
  const [a, b] = [flights.load("a"), flights.load("b")];
  await turn();
  leave.abort();
  await turn();
  steps[0]?.resolve();
  await turn();
  steps[1]?.resolve();
  await expect(Promise.all([a, b])).resolves.toEqual(["a", "b a"]);
});

it.runIf(isContextFree())("a load that was given up by its own limit has nobody waiting in a ring", async () => {
  const clock = new VirtualClock();
  const asks = Promise.withResolvers<void>();
  const goes = Promise.withResolvers<void>();
  const flights: SingleFlight<string, string> = singleFlight(async (key: string) => {
    if (key === "a") {
      await inner.load("b").catch(() => {});
      await goes.promise;
      return "a";
    }
    return key;
  });
  let late: Promise<string> | undefined;
  const inner: SingleFlight<string, string> = singleFlight(
    async (key: string) => {
      await asks.promise;
      late = flights.load("a");
      return `${key} ${await late}`;
    },
    { timeoutMs: 10, clock },
  );
  const a = flights.load("a");
  await clock.advance(10);
  await turn();
  asks.resolve();
  await turn();
  goes.resolve();
  await expect(a).resolves.toBe("a");
  await expect(late).resolves.toBe("a");
});

it("what a load has left behind may ask for its key again once it is over", async () => {
  let later: (() => Promise<string>) | undefined;
  const flights: SingleFlight<string, string> = singleFlight(async (key: string) => {
    later ??= AsyncLocalStorage.bind(() => flights.load(key)); // as a timer would
    await turn();
    return key;
  });
  await flights.load("a");
  const other = flights.load("a"); // under way, but not by what asks
  expect(await Promise.all([later?.(), other])).toEqual(["a", "a"]);
});

it("C042: each caller goes on in its own async context, and the load runs in that of who began it", async () => {
  const context = new AsyncLocalStorage<string>();
  const seen: (string | undefined)[] = [];
  const flights = singleFlight(async (key: string) => {
    await turn();
    seen.push(context.getStore());
    return key;
  });
  const ask = async (): Promise<void> => {
    await flights.load("a", { signal: new AbortController().signal });
    seen.push(context.getStore());
  };
  await Promise.all(["first", "second"].map((who) => context.run(who, ask)));
  expect(seen).toEqual(["first", "first", "second"]);
});

it("hides no failure that nobody looks at, and has no opinion on one that all have left", async () => {
  const seen: unknown[] = [];
  const listener = (reason: unknown): void => void seen.push(reason);
  process.on("unhandledRejection", listener);
  const { flights, loads } = stage();
  void flights.load("a");
  loads[0]?.reject("unseen");
  const call = new AbortController();
  flights.load("b", { signal: call.signal }).catch(() => {});
  call.abort();
  loads[1]?.reject("nobody's");
  await turn();
  await turn();
  process.off("unhandledRejection", listener);
  expect(seen).toEqual(["unseen"]);
});

it("takes turns as ever: a later caller of the same load is answered later", async () => {
  const { flights, loads } = stage();
  const order: number[] = [];
  const all = [0, 1, 2].map((id) => flights.load("a").then(() => order.push(id)));
  loads[0]?.resolve("value");
  await Promise.all(all);
  expect(order).toEqual([0, 1, 2]);
});

it("has a name, and refuses what it can't use", () => {
  const flights = new SingleFlight(() => 1, { name: "prices" });
  expect(
    namedEntries()
      .find(({ name }) => name === "prices")
      ?.target.deref(),
  ).toBe(flights);
  expect(() => singleFlight("fn" as never)).toThrow(TypeError);
  expect(() => singleFlight(() => 1, { timeoutMs: -1 })).toThrow("timeoutMs must be >= 0, got -1");
  expect(() => singleFlight(() => 1, { maxJoinAgeMs: Number.NaN })).toThrow(RangeError);
  for (const name of ["keyOf", "isSame"])
    expect(() => singleFlight(() => 1, { [name]: 1 })).toThrow(`${name} must be a function, got number`);
});

it("rejects with what keyOf throws, and begins nothing", async () => {
  const flights = singleFlight(() => 1, {
    keyOf() {
      throw new Error("no key");
    },
  });
  await expect(flights.load("a")).rejects.toThrow("no key");
  expect(flights.stats().started).toBe(0);
});

it("has one live load a key that all newcomers join, aborted exactly when nobody waits, under any plan", () => {
  const act = fc.constantFrom("plain", "join", "join", "abort", "forget", "end", "fail", "settle");
  const step = fc.record({ act, key: fc.constantFrom("a", "b"), which: fc.nat({ max: 5 }) });
  return fc.assert(fc.asyncProperty(fc.array(step, { maxLength: 40 }), play), { numRuns: 300 });
});

interface Step {
  readonly act: string;
  readonly key: string;
  readonly which: number;
}

interface Model {
  readonly load: Load;
  waiters: number;
  stays: boolean;
}

async function play(plan: readonly Step[]): Promise<void> {
  const { flights, loads } = stage();
  const live = new Map<string, Model>();
  const all: Model[] = [];
  const callers: { readonly abort: AbortController; readonly of: Model }[] = [];
  const ended = new Set<Load>();
  for (const { act, key, which } of plan) {
    if (act === "plain" || act === "join") {
      const count = loads.length;
      const abort = new AbortController();
      flights.load(key, act === "join" ? abort : undefined).catch(() => {});
      let model = live.get(key);
      expect(loads.length - count).toBe(model === undefined ? 1 : 0);
      if (model === undefined) {
        model = { load: loads.at(-1) as Load, waiters: 0, stays: false };
        live.set(key, model);
        all.push(model);
      }
      model.waiters += 1;
      if (act === "plain") model.stays = true;
      else callers.push({ abort, of: model });
    } else if (act === "abort") {
      const [caller] = callers.splice(which % Math.max(1, callers.length), 1);
      if (caller === undefined) continue;
      caller.abort.abort();
      const { of } = caller;
      if (ended.has(of.load)) continue;
      of.waiters -= 1;
      if (of.waiters === 0 && live.get(key) === of) live.delete(key);
      for (const [name, model] of live) if (model === of && of.waiters === 0) live.delete(name);
    } else if (act === "forget") {
      flights.forget(key);
      live.delete(key);
    } else if (act === "settle") await turn();
    else {
      const model = all[which % Math.max(1, all.length)];
      if (model === undefined || ended.has(model.load)) continue;
      ended.add(model.load);
      if (act === "end") model.load.resolve("value");
      else model.load.reject(new Error("failed"));
      await turn();
      for (const [name, each] of live) if (each === model) live.delete(name);
    }
    for (const { load, waiters } of all) if (!ended.has(load)) expect(load.signal.aborted).toBe(waiters === 0);
    for (const name of ["a", "b"]) expect(flights.has(name)).toBe(live.has(name));
    expect(flights.stats().flights).toBe(all.length - ended.size);
  }
  await turn();
  for (const { abort, of } of callers)
    expect(getEventListeners(abort.signal, "abort").length).toBe(ended.has(of.load) ? 0 : 1);
}

interface Load {
  readonly signal: AbortSignal;
  resolve(value: string): void;
  reject(reason: unknown): void;
}

/** Flights whose loads end when they are told to. */
function stage(options: ConstructorParameters<typeof SingleFlight<string, string>>[1] = {}): {
  readonly flights: SingleFlight<string, string>;
  readonly loads: Load[];
} {
  const loads: Load[] = [];
  const fn = (_: string, { signal }: LoadSignal): Promise<string> =>
    new Promise((resolve, reject) => void loads.push({ signal, resolve, reject }));
  return { flights: new SingleFlight(fn, options), loads };
}

async function failing<T>(promise: Promise<T>, fail: () => void): Promise<T> {
  fail();
  return promise;
}
