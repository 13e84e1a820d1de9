import { setImmediate as turn } from "node:timers/promises";
import { runInNewContext } from "node:vm";
import * as fc from "fast-check";
import { expect, it, vi } from "vitest";
import { ConflictError } from "../errors.ts";
import { namedEntries } from "../internal/names.ts";
import { RwLock } from "../sync/rw-lock.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { Snapshot, type SnapshotChange } from "./snapshot.ts";

it("F13.1: shows readers the old value or the new one, whole, and never anything between", async () => {
  const config = new Snapshot({ host: "a", port: 1 });
  const seen: unknown[] = [config.get()];
  const update = config.update(async ({ host }) => {
    await turn();
    seen.push(config.get());
    return { host: `${host}b`, port: 2 };
  });
  seen.push(config.get());
  await update;
  seen.push(config.get());
  expect(seen).toEqual([
    { host: "a", port: 1 },
    { host: "a", port: 1 },
    { host: "a", port: 1 },
    { host: "ab", port: 2 },
  ]);
});

it("F13.2: freezes a value all through, so that a write to an inner list throws", () => {
  const shared = { inner: [1, { deep: true }] };
  const snapshot = new Snapshot(Object.freeze(shared)); // frozen outside only
  const { inner } = snapshot.get() as typeof shared;
  expect(() => inner.push(2)).toThrow(TypeError);
  expect(() => ((inner[1] as { deep: boolean }).deep = false)).toThrow(TypeError);
  expect(snapshot.get()).toEqual({ inner: [1, { deep: true }] });
});

it("F09.5: what a reader does to what it read reaches no other reader", () => {
  const snapshot = new Snapshot({ routes: ["/a"] });
  expect(() => (snapshot.get().routes as string[]).push("/evil")).toThrow(TypeError);
  expect(snapshot.get().routes).toEqual(["/a"]);
});

it.each([
  ["a Map", new Map(), "the value.at is a Map"],
  ["a Set", new Set(), "the value.at is a Set"],
  ["a Date", new Date(0), "the value.at is a Date"],
  ["a typed array", new Uint8Array(1), "the value.at is a Uint8Array"],
  [
    "an instance of a class",
    new (class Point {
      x = 1;
    })(),
    "the value.at is a Point",
  ],
  ["an array of a class of its own", new (class List extends Array {})(), "the value.at is a List"],
  ["a function", () => 1, "the value.at is a function"],
])("refuses %s, which stays changeable when frozen, and freezes nothing", (_, at, message) => {
  const value = { list: [1], at };
  const snapshot = new Snapshot<unknown>(1);
  expect(() => new Snapshot<unknown>(value)).toThrow(message);
  expect(() => snapshot.set(value)).toThrow("give plain data, or freeze: false");
  expect([Object.isFrozen(value), Object.isFrozen(value.list), snapshot.version]).toEqual([false, false, 1]);
  expect(new Snapshot<unknown>(value, { freeze: false }).get()).toBe(value);
});

it("refuses getters and setters, and says where what it refuses is", () => {
  const value = { rows: [Object.defineProperty({}, "now", { get: () => 1 })] };
  expect(() => new Snapshot<unknown>(value)).toThrow("the value.rows.0.now is a getter or setter");
});

it("takes plain data of any shape: cycles, no prototype, symbols, hidden properties, another realm", () => {
  const key = Symbol("key");
  const bare = Object.assign<object, { deep: object }>(Object.create(null) as object, { deep: { a: 1 } });
  const value: Record<PropertyKey, unknown> = {
    bare,
    [key]: { b: 2 },
    foreign: runInNewContext("({ list: [1, {}] })"),
  };
  value["self"] = value;
  Object.defineProperty(value, "hidden", { value: { c: 3 }, enumerable: false });
  const snapshot = new Snapshot<unknown>(value);
  for (const inner of [bare, bare.deep, value[key], value["hidden"], (value["foreign"] as { list: unknown[] }).list[1]])
    expect(Object.isFrozen(inner)).toBe(true);
  expect(snapshot.get()).toBe(value);
});

it("F13.3: loses none of two hundred updates that all begin at once, and counts those that came too late", async () => {
  const snapshot = new Snapshot({ count: 0 });
  await Promise.all(Array.from({ length: 200 }, () => snapshot.update(addOne)));
  expect(snapshot.get()).toEqual({ count: 200 });
  expect(snapshot.version).toBe(201);
  expect(snapshot.stats().conflicts).toBeGreaterThan(0);
});

async function addOne({ count }: { readonly count: number }): Promise<{ count: number }> {
  await Promise.resolve();
  return { count: count + 1 };
}

it("F13.3: read, build, store without a comparison loses an update; set with the version that was read refuses instead", async () => {
  const lossy = new Snapshot(0);
  const strict = new Snapshot(0);
  const refused: boolean[] = [];
  const add = async (): Promise<void> => {
    const [value, { value: pinned, version }] = [lossy.get(), strict.pin()];
    await turn();
    lossy.set(value + 1);
    refused.push(!strict.set(pinned + 1, version));
  };
  await Promise.all([add(), add()]);
  expect(lossy.get()).toBe(1);
  expect([strict.get(), refused]).toEqual([1, [false, true]]);
});

it("calls the function of an update in this turn, and is done in it if that needs no time", () => {
  const snapshot = new Snapshot(1);
  void snapshot.update((value) => value + 1);
  expect([snapshot.get(), snapshot.version]).toEqual([2, 2]);
});

it("begins an update anew when its own function replaces the value, and keeps both changes", async () => {
  const snapshot = new Snapshot<readonly string[]>([]);
  let calls = 0;
  const result = await snapshot.update((list) => {
    calls += 1;
    if (calls === 1) void snapshot.update((inner) => [...inner, "inner"]);
    return [...list, "outer"];
  });
  expect(result).toEqual(["inner", "outer"]);
  expect([calls, snapshot.stats().conflicts]).toEqual([2, 1]);
});

it("gives up with ConflictError after maxAttempts, and changes nothing", async () => {
  const snapshot = new Snapshot(0);
  let calls = 0;
  const hopeless = snapshot.update(
    (value) => {
      calls += 1;
      snapshot.set(snapshot.get() + 1);
      return value - 100;
    },
    { maxAttempts: 3 },
  );
  await expect(hopeless).rejects.toMatchObject({ code: "CONFLICT", attempts: 3 });
  await expect(hopeless).rejects.toBeInstanceOf(ConflictError);
  expect([calls, snapshot.get()]).toEqual([3, 3]);
});

it("changes nothing by an update that throws, rejects or makes what cannot be frozen", async () => {
  const snapshot = new Snapshot<unknown>("old");
  const failure = new Error("no");
  const fail = (): never => {
    throw failure;
  };
  await expect(snapshot.update(fail)).rejects.toBe(failure);
  await expect(snapshot.update(() => Promise.reject(failure))).rejects.toBe(failure);
  await expect(snapshot.update(() => new Map())).rejects.toThrow(TypeError);
  await expect(snapshot.update(1 as never)).rejects.toThrow("fn must be a function, got number");
  await expect(snapshot.update(() => 1, { maxAttempts: 0 })).rejects.toThrow(
    "maxAttempts must be an integer >= 1, got 0",
  );
  expect(snapshot.pin()).toEqual({ value: "old", version: 1 });
});

it("takes an update that makes the same value for no change", async () => {
  const value = { a: 1 };
  const snapshot = new Snapshot(value);
  const told = vi.fn<() => void>();
  snapshot.subscribe(told);
  await expect(snapshot.update((same) => same)).resolves.toBe(value);
  expect(snapshot.version).toBe(1);
  expect(told).not.toHaveBeenCalled();
});

it("keeps one version for a request through all it awaits, while others see the new one", async () => {
  const config = new Snapshot({ limit: 1 });
  const seen: number[] = [];
  const request = config.run(async () => {
    seen.push(config.current.limit);
    await turn();
    seen.push(config.current.limit, config.get().limit);
    config.run(() => seen.push(config.current.limit));
  });
  config.set({ limit: 2 });
  expect(config.current.limit).toBe(2);
  await request;
  expect(seen).toEqual([1, 1, 2, 1]);
  expect(config.current.limit).toBe(2);
});

it("pins for each snapshot by itself", () => {
  const [a, b] = [new Snapshot(1), new Snapshot(1)];
  a.run(() => {
    a.set(2);
    b.set(2);
    expect([a.current, b.current]).toEqual([1, 2]);
  });
});

it("hands out a pinned version that nobody can change, whatever is set afterwards", () => {
  const snapshot = new Snapshot("a");
  const pinned = snapshot.pin();
  snapshot.set("b");
  expect(pinned).toEqual({ value: "a", version: 1 });
  expect(() => ((pinned as { version: number }).version = 9)).toThrow(TypeError);
});

it("tells every subscriber of each change once, in order, also of those that a subscriber makes", () => {
  const snapshot = new Snapshot(0);
  const heard: Record<"first" | "second", SnapshotChange<number>[]> = { first: [], second: [] };
  snapshot.subscribe((change) => {
    heard.first.push(change);
    if (change.value < 3) snapshot.set(change.value + 1);
  });
  snapshot.subscribe((change) => void heard.second.push(change));
  snapshot.set(1);
  const all = [1, 2, 3].map((value) => ({ value, previous: value - 1, version: value + 1 }));
  expect(heard).toEqual({ first: all, second: all });
});

it("lets no subscriber that throws keep a change from the others, and hears no more of who has left", async () => {
  const unhandled = vi.fn<(error: unknown) => void>();
  process.on("unhandledRejection", unhandled);
  const failure = new Error("of a subscriber");
  const snapshot = new Snapshot(0);
  const heard: number[] = [];
  const stop = snapshot.subscribe(() => {
    throw failure;
  });
  snapshot.subscribe(({ value }) => void heard.push(value));
  snapshot.set(1);
  stop();
  snapshot.set(2);
  await turn();
  process.off("unhandledRejection", unhandled);
  expect(heard).toEqual([1, 2]);
  expect(unhandled.mock.calls.map(([error]) => error)).toEqual([failure]);
  expect(snapshot.stats().subscribers).toBe(1);
});

it("F13.5: tells how old its value is, by its own clock, and by which name it is found", async () => {
  const clock = new VirtualClock();
  const snapshot = new Snapshot(1, { name: "flags", clock });
  await clock.advance(500);
  expect(snapshot.stats()).toEqual({ version: 1, ageMs: 500, subscribers: 0, conflicts: 0 });
  snapshot.set(2);
  await clock.advance(20);
  expect(snapshot.stats()).toMatchObject({ version: 2, ageMs: 20 });
  expect(namedEntries().find(({ target }) => target.deref() === snapshot)).toMatchObject({
    kind: "snapshot",
    name: "flags",
  });
});

it("F13.5: a balance that is spent by what a snapshot says is spent twice; an update sees the one before", async () => {
  const shown = new Snapshot({ balance: 10 });
  const spend = async (): Promise<number> => {
    const { balance } = shown.get();
    await turn();
    return balance >= 10 ? 10 : 0;
  };
  expect(await Promise.all([spend(), spend()])).toEqual([10, 10]);
  const safe = (): Promise<number> => {
    let spent = 0;
    const take = async ({ balance }: { readonly balance: number }): Promise<{ balance: number }> => {
      await turn();
      spent = balance >= 10 ? 10 : 0;
      return { balance: balance - spent };
    };
    return shown.update(take).then(() => spent);
  };
  expect((await Promise.all([safe(), safe()])).toSorted((a, b) => a - b)).toEqual([0, 10]);
  expect(shown.get().balance).toBe(0);
});

it("walks only what is new of a value that shares most of itself with the one before", () => {
  const rows = Array.from({ length: 10 }, (_, id) => ({ id }));
  const snapshot = new Snapshot({ rows, note: "" });
  const visited = vi.spyOn(Reflect, "ownKeys");
  snapshot.set({ ...snapshot.get(), note: "new" });
  expect(visited).toHaveBeenCalledTimes(1);
  visited.mockRestore();
});

function hundredOf(n: number): { n: number }[] {
  return Array.from({ length: 100 }, () => ({ n }));
}

it("F13.4: a large value is walked at each replacement, and a change under an RwLock walks nothing", async () => {
  const [snapshot, lock] = [new Snapshot(hundredOf(0)), RwLock.of(hundredOf(0))];
  const visited = vi.spyOn(Reflect, "ownKeys");
  for (let n = 1; n <= 3; n += 1) snapshot.set(hundredOf(n));
  expect(visited).toHaveBeenCalledTimes(303);
  for (let n = 1; n <= 3; n += 1) await lock.writers.run(({ value }) => value.forEach((row) => (row.n = n)));
  expect(visited).toHaveBeenCalledTimes(303);
  visited.mockRestore();
});

it("loses no update, gives each version once and tells all in order, under any plan of updates, sets and ends", () => {
  const step = fc.constantFrom("update", "update later", "update later", "end", "end", "set", "stale set", "throw");
  return fc.assert(fc.asyncProperty(fc.array(step, { maxLength: 40 }), play), { numRuns: 300 });
});

async function play(plan: readonly string[]): Promise<void> {
  const snapshot = new Snapshot<readonly number[]>([]);
  const heard: SnapshotChange<readonly number[]>[] = [];
  snapshot.subscribe((change) => void heard.push(change));
  const ends: (() => void)[] = [];
  const kept = new Set<number>();
  const updates: Promise<unknown>[] = [];
  for (const [id, step] of plan.entries()) {
    const pause = (): Promise<void> => new Promise((end) => void ends.push(end));
    const add = (list: readonly number[]): readonly number[] => [...list, id];
    if (step === "update") updates.push(snapshot.update(add));
    else if (step === "update later") updates.push(snapshot.update((list) => pause().then(() => add(list))));
    else if (step === "set") snapshot.set(add(snapshot.get()), snapshot.version);
    else if (step === "stale set") expect(snapshot.set([], snapshot.version - 1)).toBe(false);
    else if (step === "throw") await expect(snapshot.update(() => Promise.reject(id))).rejects.toBe(id);
    else ends.shift()?.();
    if (["update", "update later", "set"].includes(step)) kept.add(id);
    await turn();
  }
  while (ends.length > 0) {
    ends.shift()?.();
    await turn();
  }
  await Promise.all(updates);
  expect(new Set(snapshot.get())).toEqual(kept);
  expect(snapshot.get()).toHaveLength(kept.size);
  expect(heard.map(({ version }) => version)).toEqual(heard.map((_, at) => at + 2)); // I2, I3
  expect(heard.length).toBe(snapshot.version - 1);
  for (const [at, { previous }] of heard.entries()) expect(previous).toBe(heard[at - 1]?.value ?? previous);
}
