import { AsyncLocalStorage } from "node:async_hooks";
import { getEventListeners } from "node:events";
import * as fc from "fast-check";
import { expect, it } from "vitest";
import { BatchAnswerError } from "../errors.ts";
import { namedEntries } from "../internal/names.ts";
import { abortCases, type AbortSubject } from "../testing/abort-suite.ts";
import { turn } from "../testing/turn.ts";
import { unhandledIn } from "../testing/unhandled.stage.ts";
import type { BatchAnswer, BatchContext, Batched, BatcherOptions, BatchSchedule } from "./batch-options.ts";
import { batch, Batcher } from "./batch.ts";
import { byKey } from "./by-key.ts";
import { loadMany } from "./load-many.ts";
import { prime } from "./prime.ts";

const subject: AbortSubject = {
  name: "Batcher.load",
  lacks: { timeoutMs: "a signal with a deadline is one" },
  open() {
    let wanted = 0;
    const ends: (() => void)[] = [];
    const batcher = new Batcher<string, string>(async (keys, { signal }) => {
      wanted += keys.length;
      const left = (): void => void (wanted -= keys.length);
      signal.addEventListener("abort", left, { once: true });
      await new Promise<void>((resolve) => void ends.push(resolve));
      if (!signal.aborted) left();
      signal.removeEventListener("abort", left);
      return keys;
    });
    return {
      call: (options) => batcher.load("key", options),
      satisfy: () => ends.pop()?.(),
      state: () => ({ wanted }),
    };
  },
};

for (const { title, run } of abortCases(subject)) it(title, run);

it("Q26: 50 rows that each load their author make one query", async () => {
  const { batcher, calls } = doubling();
  const rows = Array.from({ length: 50 }, (_, id) => id);
  expect(await Promise.all(rows.map((id) => batcher.load(id)))).toEqual(rows.map((id) => id * 2));
  expect(calls).toEqual([rows]);
  expect(batcher.stats()).toEqual({ batches: 1, keys: 50, hits: 0 });
});

it("J25: takes all loads of one turn, with those that its promise reactions make", async () => {
  const { batcher, calls } = doubling();
  const chain = async (key: number, reactions: number): Promise<number> => {
    for (let i = 0; i < reactions; i += 1) await Promise.resolve();
    return batcher.load(key);
  };
  const first = [batcher.load(0), chain(1, 1), chain(2, 2), chain(3, 50)];
  await turn();
  const second = batcher.load(4);
  expect(await Promise.all([...first, second])).toEqual([0, 2, 4, 6, 8]);
  expect(calls).toEqual([[0, 1, 2, 3], [4]]);
});

it("asks for a key once in a batch, and again in the next", async () => {
  const { batcher, calls } = doubling();
  expect(await Promise.all([1, 2, 1, 1].map((key) => batcher.load(key)))).toEqual([2, 4, 2, 2]);
  await batcher.load(1);
  expect(calls).toEqual([[1, 2], [1]]);
});

it.each([
  ["in order", [1, 2, 3, 4]],
  ["in no order", [3, 1, 4, 2]],
  ["of two kinds", [1, "1", 2, "2"]],
])("sends a key once that is asked for again, where keys are %s", async (_, keys) => {
  const failure = new Error("no such row");
  const seen: unknown[] = [];
  const batcher = batch<unknown, string>((all) => {
    seen.push(all);
    return all.map((key) => (key === keys[1] ? failure : `row ${String(key)}`));
  });
  const call = new AbortController();
  const results = await loadMany(batcher, [...keys, ...keys, ...keys]);
  const left = Promise.allSettled([batcher.load(1), batcher.load(2, call), batcher.load(2), batcher.load(3, call)]);
  call.abort("left");
  const expected = keys.map((key) => (key === keys[1] ? { reason: failure } : { value: `row ${String(key)}` }));
  expect(results).toMatchObject([...expected, ...expected, ...expected]);
  expect((await left).map(({ status }) => status)).toEqual([
    keys[1] === 1 ? "rejected" : "fulfilled",
    "rejected",
    keys[1] === 2 ? "rejected" : "fulfilled",
    "rejected",
  ]);
  expect(seen).toEqual([keys, [1, 2]]);
});

it("J26: rejects all keys of an answer of another length, naming what it expected and got", async () => {
  for (const [answer, got] of [
    [[1], 1],
    [[1, 2, 3], 3],
    [undefined, undefined],
  ] as const) {
    const batcher = batch<number, number>(() => answer as never);
    const results = await loadMany(batcher, [1, 2]);
    const [first] = results;
    expect(results).toMatchObject([{ reason: { expected: 2, got } }, { reason: { expected: 2, got } }]);
    expect(first?.status === "rejected" && first.reason).toBeInstanceOf(BatchAnswerError);
  }
});

it("J26: takes what a query found in any order by key, and a key that it lacks is that key's error", async () => {
  const batcher = batch<number, string>((keys) => byKey(keys, new Map([3, 1].map((key) => [key, `row ${key}`]))));
  const results = await loadMany(batcher, [1, 2, 3]);
  expect(results).toMatchObject([{ value: "row 1" }, { reason: { code: "BATCH_ANSWER" } }, { value: "row 3" }]);
});

it("J27: an error in one place rejects only that key; the other 49 resolve", async () => {
  const failure = new Error("no such row");
  const batcher = batch<number, number>((keys) => keys.map((key) => (key === 7 ? failure : key)));
  const results = await loadMany(
    batcher,
    Array.from({ length: 50 }, (_, id) => id),
  );
  expect(results.filter(({ status }) => status === "rejected")).toEqual([{ status: "rejected", reason: failure }]);
  expect(results[7]).toMatchObject({ reason: failure });
});

it("C059: a batch function that throws before it returns rejects its callers, and nothing of it is kept", async () => {
  let count = 0;
  const failure = new Error("thrown");
  const cache = new Map<unknown, Promise<number>>();
  const batcher = batch<number, number>(
    (keys) => {
      count += 1;
      if (count === 1) throw failure;
      return keys;
    },
    { cache },
  );
  expect(await loadMany(batcher, [1, 2])).toMatchObject([{ reason: failure }, { reason: failure }]);
  expect(cache.size).toBe(0);
  await expect(batcher.load(1)).resolves.toBe(1);
  expect(count).toBe(2);
});

it("C061: one who aborts leaves alone; the call goes on for the others", async () => {
  const { batcher, calls } = held();
  const call = new AbortController();
  const answers = [batcher.load(1), batcher.load(2, call), batcher.load(3)];
  await turn();
  call.abort("left");
  await expect(answers[1]).rejects.toBe("left");
  expect(calls[0]?.signal.aborted).toBe(false);
  calls[0]?.answer([1, 2, 3]);
  expect(await Promise.all([answers[0], answers[2]])).toEqual([1, 3]);
});

it("C061: when all have aborted, so does the call, by the last one's reason", async () => {
  const { batcher, calls } = held();
  const callers = [1, 2, 3].map(() => new AbortController());
  const answers = Promise.allSettled(callers.map(({ signal }, key) => batcher.load(key, { signal })));
  await turn();
  callers[0]?.abort("first");
  callers[2]?.abort("second");
  expect(calls[0]?.signal.aborted).toBe(false);
  callers[1]?.abort("last");
  expect(calls[0]?.signal.reason).toBe("last");
  expect(await answers).toMatchObject([{ reason: "first" }, { reason: "last" }, { reason: "second" }]);
});

it("C061: a key that is given up before the batch is sent isn't in it", async () => {
  const { batcher, calls } = held();
  const call = new AbortController();
  const answers = [batcher.load(1), batcher.load(2, call), batcher.load(3)];
  call.abort("left");
  await expect(answers[1]).rejects.toBe("left");
  await turn();
  expect(calls[0]?.keys).toEqual([1, 3]);
  calls[0]?.answer([10, 30]);
  expect(await Promise.all([answers[0], answers[2]])).toEqual([10, 30]);
});

it("sends nothing if all have left before, and who comes then gets a batch of their own", async () => {
  const { batcher, calls } = held();
  const call = new AbortController();
  const left = Promise.allSettled([batcher.load(1, call), batcher.load(2, call)]);
  call.abort("left");
  const fresh = batcher.load(1);
  await left;
  await turn();
  expect(calls.map(({ keys }) => keys)).toEqual([[1]]);
  calls[0]?.answer([10]);
  await expect(fresh).resolves.toBe(10);
  expect(batcher.stats()).toMatchObject({ batches: 1, keys: 1 });
});

it("keeps a key that somebody else wants, with a signal or without", async () => {
  const { batcher, calls } = held();
  const [one, other] = [new AbortController(), new AbortController()];
  const answers = [batcher.load(1, one), batcher.load(1, other), batcher.load(2, one), batcher.load(2)];
  const settled = Promise.allSettled(answers);
  one.abort("left");
  await turn();
  expect(calls[0]?.keys).toEqual([1, 2]);
  other.abort("left too");
  calls[0]?.answer([10, 20]);
  expect(await settled).toMatchObject([{ reason: "left" }, { reason: "left too" }, { reason: "left" }, { value: 20 }]);
});

it("C063: splits a turn by maxSize, and takes new loads while a part of it runs", async () => {
  const { batcher, calls } = held({ maxSize: 4 });
  const first = Array.from({ length: 9 }, (_, key) => batcher.load(key));
  await turn();
  expect(calls.map(({ keys }) => keys.length)).toEqual([4, 4, 1]);
  const second = [20, 21, 22, 23].map((key) => batcher.load(key));
  await turn();
  for (const { keys, answer } of calls) answer(keys);
  expect(await Promise.all([...first, ...second])).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 20, 21, 22, 23]);
  expect(calls.map(({ keys }) => keys.length)).toEqual([4, 4, 1, 4]);
});

it("J28: sends 50,000 keys in as many calls as maxSize asks for", async () => {
  const { batcher, calls } = doubling({ maxSize: 1_000 });
  await Promise.all(Array.from({ length: 50_000 }, (_, key) => batcher.load(key)));
  expect([calls.length, Math.max(...calls.map((keys) => keys.length))]).toEqual([50, 1_000]);
});

it("splits by weight as well, and sends a key that is too heavy alone", async () => {
  const { batcher, calls } = doubling({ maxWeight: 10, maxSize: 3, weight: (key) => key });
  await Promise.all([4, 6, 1, 2, 3, 99, 5, 0].map((key) => batcher.load(key)));
  expect(calls).toEqual([[4, 6], [1, 2, 3], [99], [5, 0]]);
});

it("keeps keys of different groups apart, and forgets groups that are idle", async () => {
  const { batcher, calls } = doubling({ group: (key) => key % 3 });
  expect(await Promise.all([1, 2, 3, 4, 5].map((key) => batcher.load(key)))).toEqual([2, 4, 6, 8, 10]);
  expect(calls).toEqual([[1, 4], [2, 5], [3]]);
});

it("tells keys apart by keyOf, and hands on the first of each", async () => {
  const seen: unknown[] = [];
  const batcher = batch<{ readonly id: number; readonly n: number }, number>(
    (keys) => {
      seen.push(keys.map(({ n }) => n));
      return keys.map(({ id }) => id);
    },
    { keyOf: ({ id }) => id },
  );
  const keys = [
    { id: 1, n: 1 },
    { id: 1, n: 2 },
    { id: 2, n: 3 },
  ];
  expect(await Promise.all(keys.map((key) => batcher.load(key)))).toEqual([1, 1, 2]);
  expect(seen).toEqual([[1, 3]]);
});

it("has no cache unless it is given one, and then asks for each key once, also while it is under way", async () => {
  const { batcher, calls } = held({ cache: new Map() });
  const first = batcher.load(1);
  await turn();
  const second = batcher.load(1);
  expect(second).toBe(first);
  calls[0]?.answer([10]);
  expect(await Promise.all([first, second, batcher.load(1)])).toEqual([10, 10, 10]);
  expect([calls.length, batcher.stats()]).toEqual([1, { batches: 1, keys: 1, hits: 2 }]);
});

it("K04, D03: keeps no error, of a key or of all, unless cacheErrors says so", async () => {
  const cache = new Map<unknown, Promise<number>>();
  const [passing, lasting] = [new Error("busy"), new Error("no such row")];
  let outcomes: (number | Error)[] = [passing, lasting, 3];
  const batcher = batch<number, number>((keys) => keys.map((key) => outcomes[key] ?? 0), {
    cache,
    cacheErrors: (error) => error === lasting,
  });
  await loadMany(batcher, [0, 1, 2]);
  expect([...cache.keys()]).toEqual([1, 2]);
  outcomes = [10, 11, 12];
  expect(await loadMany(batcher, [0, 1, 2])).toMatchObject([{ value: 10 }, { reason: lasting }, { value: 3 }]);
});

it("an invalidation beats the load that is under way: its value isn't kept", async () => {
  const cache = new Map<unknown, Promise<number>>();
  const { batcher, calls } = held({ cache });
  const old = batcher.load(1);
  await turn();
  cache.delete(1);
  const fresh = batcher.load(1);
  await turn();
  calls[1]?.answer([new Error("failed")]);
  await expect(fresh).rejects.toThrow("failed");
  const third = batcher.load(1);
  calls[0]?.answer([new Error("old")]);
  await expect(old).rejects.toThrow("old");
  expect(cache.has(1)).toBe(true); // the old one's failure has not removed the third
  await turn();
  calls[2]?.answer([30]);
  await expect(third).resolves.toBe(30);
});

it("a key that all have given up leaves the cache, so that the next caller doesn't get a dying load", async () => {
  const cache = new Map<unknown, Promise<number>>();
  const { batcher, calls } = held({ cache });
  const call = new AbortController();
  const left = batcher.load(1, call);
  const other = batcher.load(2);
  await turn();
  call.abort("left");
  await expect(left).rejects.toBe("left");
  expect(cache.has(1)).toBe(false);
  const fresh = batcher.load(1);
  await turn();
  calls[0]?.answer([10, 20]);
  calls[1]?.answer([11]);
  expect(await Promise.all([fresh, other])).toEqual([11, 20]);
});

it("who finds a key under way in the cache counts as one who waits for it", async () => {
  const { batcher, calls } = held({ cache: new Map() });
  const [one, other] = [new AbortController(), new AbortController()];
  const first = batcher.load(1, one);
  await turn();
  const second = batcher.load(1, other);
  one.abort("left");
  await expect(first).rejects.toBe("left");
  expect(calls[0]?.signal.aborted).toBe(false);
  void batcher.load(1); // stays
  other.abort("left");
  await expect(second).rejects.toBe("left");
  expect(calls[0]?.signal.aborted).toBe(false);
});

it("is primed with a value or an error, but not over what is there", async () => {
  const cache = new Map<unknown, Promise<number>>();
  const { batcher, calls } = doubling({ cache });
  const failure = new Error("known to be gone");
  prime(cache, 1, 100);
  prime(cache, 1, 200);
  expect(await unhandledIn(async () => prime(cache, 2, failure))).toEqual([]); // nobody has asked for it
  expect(await loadMany(batcher, [1, 2, 3])).toMatchObject([{ value: 100 }, { reason: failure }, { value: 6 }]);
  cache.delete(1);
  await expect(batcher.load(1)).resolves.toBe(2);
  cache.clear();
  await loadMany(batcher, [1, 3]);
  expect(calls).toEqual([[3], [1], [1, 3]]);
});

it("loads many at once, each with its own outcome, and rejects only by the signal", async () => {
  const { batcher } = held();
  const call = new AbortController();
  const many = loadMany(batcher, new Set([1, 2]), call);
  call.abort("left");
  await expect(many).rejects.toBe("left");
  expect(await loadMany(batcher, [])).toEqual([]);
});

it("calls the batch function in the async context of who made it, not in that of a caller", async () => {
  const context = new AsyncLocalStorage<string>();
  const seen: (string | undefined)[] = [];
  const batcher = context.run("maker", () =>
    batch<number, number>((keys) => {
      seen.push(context.getStore());
      return keys;
    }),
  );
  const ask = async (key: number): Promise<void> => {
    await batcher.load(key);
    seen.push(context.getStore());
  };
  for (const tenant of ["a", "b"]) await Promise.all([1, 2].map((key) => context.run(tenant, ask, key)));
  expect(seen).toEqual(["maker", "a", "a", "maker", "b", "b"]);
});

it("hides no failure that nobody looks at, once for each load", async () => {
  const seen: unknown[] = [];
  const listener = (reason: unknown): void => void seen.push(reason);
  process.on("unhandledRejection", listener);
  const batcher = batch<string, string>(() => {
    throw new Error("unseen");
  });
  void batcher.load("a");
  void batcher.load("b");
  const call = new AbortController();
  batcher.load("c", call).catch(() => {});
  call.abort();
  await turn();
  await turn();
  process.off("unhandledRejection", listener);
  expect(seen).toHaveLength(2);
});

it("keeps no error when cacheErrors throws", async () => {
  const cache = new Map<string, Promise<string>>();
  const batcher = batch<string, string>(() => [new Error("row")], { cache, cacheErrors: broken });
  await expect(batcher.load("a")).rejects.toThrow("broken");
  expect(cache.size).toBe(0);
});

it.each([Number.NaN, -1, "5", null])("refuses a weight of %s, and sends nothing for it", async (weight) => {
  const { batcher, calls } = doubling({ maxWeight: 3, weight: (key) => (key === 1 ? (weight as number) : 2) });
  const bad = expect(batcher.load(1)).rejects.toThrow("weight must be");
  await expect(Promise.all([2, 3].map((key) => batcher.load(key)))).resolves.toEqual([4, 6]);
  await bad;
  expect(calls).toEqual([[2], [3]]);
});

it("takes nothing more into what its line has failed, were it at once", async () => {
  const added: Batched[] = [];
  let [failsAtOnce, full] = [false, 0];
  const reason = new Error("overload");
  const line: BatchSchedule = {
    add(each) {
      added.push(each);
      if (failsAtOnce) each.fail(reason);
    },
    full: () => (full += 1),
  };
  const { batcher } = doubling({ line });
  const lost = batcher.load(1);
  added[0]?.fail(reason);
  await expect(lost).rejects.toBe(reason);
  failsAtOnce = true;
  await expect(batcher.load(2)).rejects.toBe(reason);
  failsAtOnce = false;
  const next = batcher.load(3);
  void added[2]?.send();
  await expect(next).resolves.toBe(6);
  expect([added.length, full]).toEqual([3, 3]);
});

it("lets a caller leave whose signal was aborted by what its load called", async () => {
  const controller = new AbortController();
  const { batcher, calls } = doubling({
    keyOf(key) {
      controller.abort(new Error("enough"));
      return key;
    },
  });
  await expect(batcher.load(1, { signal: controller.signal })).rejects.toThrow("enough");
  await turn();
  expect([calls, getEventListeners(controller.signal, "abort")]).toEqual([[], []]);
});

it("does what its function does to the keys no harm", async () => {
  const batcher = batch<number, number>((keys) => (keys as number[]).splice(0).map((key) => key * 2));
  expect(await Promise.all([1, 2].map((key) => batcher.load(key)))).toEqual([2, 4]);
});

it("a batch function may load by the batcher it serves: that is another batch", async () => {
  const batcher: Batcher<number, number> = batch<number, number>((keys) =>
    Promise.all(keys.map(async (key) => (key === 0 ? 1 : (await batcher.load(key - 1)) + 1))),
  );
  expect(await Promise.all([batcher.load(3), batcher.load(1)])).toEqual([4, 2]);
  expect(batcher.stats().batches).toBe(4);
});

it("settles callers even if the store or cacheErrors throws, and rejects when a callback does", async () => {
  const store = { get: () => undefined, set: () => undefined, delete: broken, clear: () => undefined };
  const failing = batch<number, number>(() => [new Error("row")], { cache: { ...store, get: () => undefined } });
  await expect(failing.load(1)).rejects.toThrow("row");
  const judged = batch<number, number>(() => [new Error("row")], { cache: new Map(), cacheErrors: broken });
  await expect(judged.load(1)).rejects.toThrow("broken");
  for (const options of [{ keyOf: broken }, { group: broken }, { weight: broken }]) {
    const batcher = batch<number, number>((keys) => keys, options);
    await expect(batcher.load(1)).rejects.toThrow("broken");
    await turn();
    expect(batcher.stats().batches).toBe(0);
  }
});

it("works without nextTick, as in a browser", async () => {
  const { process } = globalThis;
  const { batcher, calls } = doubling();
  try {
    globalThis.process = Object.create(process, { nextTick: { value: undefined } }) as NodeJS.Process;
    const all = [batcher.load(1), Promise.resolve().then(() => batcher.load(2))];
    expect(await Promise.all(all)).toEqual([2, 4]);
  } finally {
    globalThis.process = process;
  }
  expect(calls).toEqual([[1, 2]]);
});

it("has a name, and refuses what it can't use", () => {
  const batcher = new Batcher<number, number>((keys) => keys, { name: "users" });
  expect(
    namedEntries()
      .find(({ name }) => name === "users")
      ?.target.deref(),
  ).toBe(batcher);
  expect(() => batch("fn" as never)).toThrow(TypeError);
  expect(() => batch(() => [], { maxSize: 0 })).toThrow("maxSize must be an integer >= 1 or Infinity, got 0");
  expect(() => batch(() => [], { maxWeight: -1 })).toThrow(RangeError);
  for (const name of ["weight", "group", "keyOf", "cacheErrors"])
    expect(() => batch(() => [], { [name]: 1 })).toThrow(`${name} must be a function, got number`);
});

it("answers each caller with its own key's value, and sends each wanted key once, under any plan", () => {
  const act = fc.constantFrom("load", "load", "with", "with", "abort", "answer", "fail", "settle");
  const step = fc.record({ act, key: fc.nat({ max: 4 }) });
  const plan = fc.array(step, { maxLength: 40 });
  return fc.assert(fc.asyncProperty(plan, fc.integer({ min: 1, max: 4 }), fc.boolean(), play), { numRuns: 300 });
});

async function play(
  plan: readonly { readonly act: string; readonly key: number }[],
  maxSize: number,
  isCached: boolean,
): Promise<void> {
  const { batcher, calls } = held({ maxSize, cache: isCached ? new Map() : undefined });
  const results: Promise<void>[] = [];
  const callers: { readonly call: AbortController; readonly key: number }[] = [];
  let answered = 0;
  const ask = (key: number, call?: AbortController): void => {
    const check = (value: number): void => expect(value).toBe(key * 10);
    results.push(
      batcher.load(key, call).then(check, (error: unknown) => {
        expect(["left", "failed"]).toContain(error);
        if (error === "left") expect(call?.signal.aborted).toBe(true);
      }),
    );
  };
  for (const { act, key } of [...plan, { act: "settle", key: 0 }]) {
    if (act === "load") ask(key);
    else if (act === "with") {
      const call = new AbortController();
      callers.push({ call, key });
      ask(key, call);
    } else if (act === "abort") callers.splice(key % Math.max(1, callers.length), 1)[0]?.call.abort("left");
    else if (act === "settle") await turn();
    else if (calls.length > answered) {
      const { keys, answer, fail } = calls[answered] ?? never();
      answered += 1;
      if (act === "answer") answer(keys.map((each) => each * 10));
      else fail("failed");
      await turn();
    }
    for (const { keys } of calls) {
      expect(keys.length).toBeLessThanOrEqual(maxSize);
      expect(new Set(keys).size).toBe(keys.length);
    }
  }
  for (const { keys, answer } of calls.slice(answered)) answer(keys.map((each) => each * 10));
  await Promise.all(results);
  for (const { call } of callers) expect(getEventListeners(call.signal, "abort")).toHaveLength(0);
}

function broken(): never {
  throw new Error("broken");
}

function never(): never {
  throw new Error("there is one");
}

function doubling(options?: BatcherOptions<number, number>): {
  readonly batcher: Batcher<number, number>;
  readonly calls: (readonly number[])[];
} {
  const calls: (readonly number[])[] = [];
  const double = (keys: readonly number[]): Promise<number[]> => {
    calls.push(keys);
    return Promise.resolve(keys.map((key) => key * 2));
  };
  return { batcher: batch(double, options), calls };
}

interface Call extends BatchContext {
  readonly keys: readonly number[];
  readonly answer: (answer: BatchAnswer<number>) => void;
  readonly fail: (reason: unknown) => void;
}

/** A batcher whose calls are answered when they are told to. */
function held(options?: BatcherOptions<number, number>): {
  readonly batcher: Batcher<number, number>;
  readonly calls: Call[];
} {
  const calls: Call[] = [];
  const batcher = batch<number, number>(
    (keys, { signal }) => new Promise((answer, fail) => void calls.push({ keys, signal, answer, fail })),
    options,
  );
  return { batcher, calls };
}
