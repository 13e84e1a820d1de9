import * as fc from "fast-check";
import { expect, it } from "vitest";
import { ClosedError, QueueFullError, TimeoutError } from "../errors.ts";
import { namedEntries } from "../internal/names.ts";
import { abortCases } from "../testing/abort-suite.ts";
import { CountingController } from "../testing/counting-signal.ts";
import { turn } from "../testing/turn.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { Broadcast, broadcast } from "./broadcast.ts";

it("gives each item to all that subscribe, from the moment they do, in the order of the publishers", async () => {
  const topic = broadcast<number>();
  expect(await topic.publish(0)).toBe(0); // to nobody, at once
  const [first, second] = [topic.subscribe({ capacity: 4 }), topic.subscribe({ capacity: 4 })];
  expect([await topic.publish(1), await topic.publish(2)]).toEqual([2, 2]);
  const late = topic.subscribe({ capacity: 4 });
  expect(await topic.publish(3)).toBe(3);
  topic.close();
  expect([await readAll(first), await readAll(second), await readAll(late)]).toEqual([[1, 2, 3], [1, 2, 3], [3]]);
});

it("hands an item to who waits for it", async () => {
  const topic = new Broadcast<string>();
  const sub = topic.subscribe({ capacity: 1 });
  const takes = [sub.take(), sub.take()];
  expect(topic.offer("a")).toBe(true);
  expect(topic.offer("b")).toBe(true);
  expect([await Promise.all(takes), sub.size]).toEqual([["a", "b"], 0]);
});

it("makes a publisher wait for the slowest, and its item has gone to nobody until all have room", async () => {
  const topic = new Broadcast<number>();
  const [quick, slow] = [topic.subscribe({ capacity: 8 }), topic.subscribe({ capacity: 1 })];
  await topic.publish(1);
  const second = topic.publish(2);
  const third = topic.publish(3);
  expect([topic.offer(4), topic.stats().waitingPublishers, quick.size]).toEqual([false, 2, 1]);
  expect(slow.poll()).toBe(1);
  expect([await second, quick.size, slow.size, topic.stats().waitingPublishers]).toEqual([2, 2, 1, 1]);
  expect(await slow.take()).toBe(2);
  await third;
  expect([quick.poll(), quick.poll(), quick.poll(), slow.poll()]).toEqual([1, 2, 3, 3]);
});

it("takes an item whose publisher gives up back from all", async () => {
  const clock = new VirtualClock();
  const topic = new Broadcast<number>({ clock });
  const [quick, slow] = [topic.subscribe({ capacity: 8 }), topic.subscribe({ capacity: 1 })];
  await topic.publish(1);
  const call = new AbortController();
  const gaveUp = Promise.allSettled([
    topic.publish(2, { timeoutMs: 10 }),
    topic.publish(3, { signal: call.signal }),
    topic.publish(4),
  ]);
  await clock.advance(10);
  call.abort("enough");
  slow.poll();
  const outcomes = await gaveUp;
  expect(outcomes.map((each) => (each.status === "rejected" ? each.reason : each.value))).toEqual([
    new TimeoutError(10),
    "enough",
    2,
  ]);
  expect([quick.poll(), quick.poll(), quick.poll()]).toEqual([1, 4, undefined]);
  expect(topic.stats()).toMatchObject({ published: 2, timedOut: 1, aborted: 1 });
});

it("drops for the one who is behind, and for nobody else", async () => {
  const topic = new Broadcast<number>();
  const all = topic.subscribe({ capacity: 9 });
  const oldest = topic.subscribe({ capacity: 2, whenFull: "drop-oldest" });
  const newest = topic.subscribe({ capacity: 2, whenFull: "drop-newest" });
  const reached = [];
  for (const item of [1, 2, 3, 4]) reached.push(await topic.publish(item));
  topic.close();
  expect(reached).toEqual([3, 3, 2, 2]); // what was dropped as the newest did not reach it
  expect([oldest.stats().missed, newest.stats().missed]).toEqual([2, 2]);
  expect([await readAll(all), await readAll(oldest), await readAll(newest)]).toEqual([
    [1, 2, 3, 4],
    [3, 4],
    [1, 2],
  ]);
  expect(topic.stats().missed).toBe(4); // also of those that are gone
});

it("ends a subscription that is too far behind, whose reader learns of it after what it has", async () => {
  const topic = new Broadcast<number>();
  const slow = topic.subscribe({ capacity: 2, whenFull: "reject" });
  for (const item of [1, 2, 3, 4]) await topic.publish(item);
  expect([topic.subscribers, slow.closed, slow.stats().missed]).toEqual([0, true, 1]);
  const seen: number[] = [];
  const reading = (async () => {
    for await (const item of slow) seen.push(item);
  })();
  await expect(reading).rejects.toThrow(QueueFullError);
  await expect(slow.take()).rejects.toMatchObject({ code: "QUEUE_FULL", limit: 2 });
  expect(seen).toEqual([1, 2]);
});

it("replays the last items to a newcomer, no more than it has room for", async () => {
  const topic = new Broadcast<number>({ replay: 3 });
  for (const item of [1, 2, 3, 4]) await topic.publish(item);
  const [wide, narrow] = [topic.subscribe({ capacity: 9 }), topic.subscribe({ capacity: 2 })];
  expect([wide.size, narrow.size, topic.stats().replayed]).toEqual([3, 2, 3]);
  expect(topic.offer(5)).toBe(false); // the narrow one is full from the start
  expect([narrow.poll(), narrow.poll(), topic.offer(5)]).toEqual([3, 4, true]);
  topic.close();
  expect(await readAll(wide)).toEqual([2, 3, 4, 5]);
  expect(await readAll(topic.subscribe({ capacity: 9 }))).toEqual([3, 4, 5]); // of one that has ended
});

it("is a value to be watched with a replay of 1: who reads gets the latest, and each change wakes who waits", async () => {
  const config = new Broadcast<string>({ replay: 1 });
  const watch = { capacity: 1, whenFull: "drop-oldest" } as const;
  config.offer("v1");
  const watcher = config.subscribe(watch);
  expect(await watcher.take()).toBe("v1");
  for (const version of ["v2", "v3", "v4"]) expect(config.offer(version)).toBe(true); // nobody ever holds it up
  expect([await watcher.take(), await config.subscribe(watch).take()]).toEqual(["v4", "v4"]);
  const change = watcher.take();
  config.offer("v5");
  expect(await change).toBe("v5");
});

it("lets a publisher go on when the subscriber that held it up leaves, whichever way", async () => {
  const topic = new Broadcast<number>();
  const call = new AbortController();
  const leave = [
    (sub: Disposable) => sub[Symbol.dispose](),
    (sub: { close(): void }) => sub.close(),
    (sub: { return(): unknown }) => sub.return(),
    () => call.abort(new Error("no more")),
  ];
  for (const go of leave) {
    const { signal } = go.length === 0 ? call : new AbortController();
    const sub = topic.subscribe({ capacity: 1, signal });
    await topic.publish(1);
    const held = topic.publish(2);
    expect(topic.stats().waitingPublishers).toBe(1);
    go(sub);
    expect([await held, topic.subscribers, sub.size, sub.closed]).toEqual([0, 0, 0, true]);
  }
});

it("leaves a loop by break, and ends it by close", async () => {
  const topic = new Broadcast<number>();
  const [breaking, closed] = [topic.subscribe({ capacity: 4 }), topic.subscribe({ capacity: 4 })];
  for (const item of [1, 2, 3]) topic.offer(item);
  for await (const item of breaking) if (item === 2) break;
  expect([topic.subscribers, breaking.size]).toEqual([1, 0]);
  const next = closed.return().then(() => closed.next());
  expect(await next).toEqual({ done: true, value: undefined });
  await expect(closed.take()).rejects.toThrow(ClosedError);
});

it("ends who waits in a loop when its subscription is left or the broadcast closed", async () => {
  const topic = new Broadcast<number>();
  const [left, open] = [topic.subscribe({ capacity: 1 }), topic.subscribe({ capacity: 1 })];
  const reads = [left.next(), open.next()];
  left.close();
  topic.close();
  open.close();
  expect(await Promise.all(reads)).toEqual([
    { done: true, value: undefined },
    { done: true, value: undefined },
  ]);
});

it("takes a failure for no end, though its error be the ClosedError of something else", async () => {
  const topic = new Broadcast<number>();
  const call = new AbortController();
  const [one, other] = [topic.subscribe({ capacity: 1 }), topic.subscribe({ capacity: 1, signal: call.signal })];
  const reads = [one.next(), other.next()];
  const upstream = new ClosedError("upstream");
  call.abort(upstream);
  topic.fail(upstream);
  for (const read of [...reads, one.next(), other.next()]) await expect(read).rejects.toBe(upstream);
});

it("rejects publishers that wait when it closes; subscribers get what they have, and then the end", async () => {
  const topic = new Broadcast<number>();
  const sub = topic.subscribe({ capacity: 1 });
  await topic.publish(1);
  const held = topic.publish(2);
  topic.close();
  topic.close();
  topic.fail(new Error("too late"));
  await expect(held).rejects.toThrow(ClosedError);
  await expect(topic.publish(3)).rejects.toThrow(ClosedError);
  expect([topic.offer(4), topic.closed, await sub.take()]).toEqual([false, true, 1]);
  await expect(sub.take()).rejects.toThrow(ClosedError);
  expect(topic.stats()).toMatchObject({ published: 1, rejected: 3, closed: true, subscribers: 0 });
});

it("fails publishers and readers at once; what had come can still be polled", async () => {
  const topic = new Broadcast<number>({ replay: 1 });
  const [idle, waiting] = [topic.subscribe({ capacity: 1 }), topic.subscribe({ capacity: 1 })];
  const failure = new Error("broken");
  await topic.publish(1);
  await waiting.take();
  const calls = [topic.publish(2), waiting.take(), waiting.next()];
  topic.fail(failure);
  calls.push(topic.publish(3), idle.take(), idle.next(), topic.subscribe({ capacity: 1 }).take());
  const outcomes = await Promise.allSettled(calls);
  expect(outcomes.every((each) => each.status === "rejected" && each.reason === failure)).toBe(true);
  expect([idle.poll(), idle.poll()]).toEqual([1, undefined]);
});

it("ends a subscription by its signal: readers get the reason, no item is kept, and no listener stays", async () => {
  const topic = new Broadcast<number>();
  const call = new CountingController();
  const [waiting, full] = [1, 2].map(() => topic.subscribe({ capacity: 1, signal: call.signal }));
  const read = waiting?.next();
  call.abort(new Error("shutdown"));
  await expect(read).rejects.toBe(call.signal.reason);
  await expect(full?.take()).rejects.toBe(call.signal.reason);
  expect([topic.subscribers, call.listeners, call.most]).toEqual([0, 0, 1]);
  expect(() => topic.subscribe({ capacity: 1, signal: call.signal })).toThrow("shutdown");
  const other = new CountingController();
  topic.subscribe({ capacity: 1, signal: other.signal }).close();
  topic.subscribe({ capacity: 1, signal: other.signal });
  topic.close();
  expect(other.listeners).toBe(0);
});

it("grants nothing to a publisher whose signal ends the subscriber that it waited for", async () => {
  const topic = new Broadcast<number>();
  const call = new AbortController();
  const other = topic.subscribe({ capacity: 4 });
  topic.subscribe({ capacity: 1, signal: call.signal });
  await topic.publish(1);
  const doomed = topic.publish(2, { signal: call.signal });
  const patient = topic.publish(3);
  call.abort(new Error("both"));
  await expect(doomed).rejects.toBe(call.signal.reason);
  expect([await patient, other.poll(), other.poll(), other.poll()]).toEqual([1, 1, 3, undefined]);
});

it("tells lag, age and losses by name, of all and of each", async () => {
  const clock = new VirtualClock();
  const topic = new Broadcast<number>({ name: "prices", replay: 1, clock });
  const sub = topic.subscribe({ capacity: 2, name: "ui" });
  topic.subscribe({ capacity: 9 });
  await topic.publish(1);
  await clock.advance(30);
  await topic.publish(2);
  const held = topic.publish(3);
  await clock.advance(20);
  expect(topic.stats()).toEqual({
    subscribers: 2,
    published: 2,
    replayed: 1,
    largestLag: 2,
    missed: 0,
    waitingPublishers: 1,
    oldestWaitMs: 20,
    rejected: 0,
    timedOut: 0,
    aborted: 0,
    closed: false,
  });
  expect(sub.stats()).toMatchObject({ size: 2, capacity: 2, oldestAgeMs: 50, taken: 0, missed: 0, closed: false });
  await sub.take();
  await held;
  expect(sub.stats()).toMatchObject({ size: 2, oldestAgeMs: 20, taken: 1 });
  const kinds = namedEntries().filter(({ name }) => name === "prices" || name === "ui");
  expect(kinds.map(({ kind }) => kind)).toEqual(["broadcast", "subscription"]);
});

it("refuses bad options and changes nothing", () => {
  const topic = new Broadcast<number>();
  expect(() => new Broadcast({ replay: -1 })).toThrow("replay must be an integer >= 0, got -1");
  expect(() => topic.subscribe({ capacity: 0 })).toThrow("capacity must be an integer >= 1, got 0");
  expect(() => topic.subscribe({ capacity: 1, whenFull: "panic" as "wait" })).toThrow(
    "whenFull must be one of wait, reject, drop-newest, drop-oldest, got panic",
  );
  expect(() => topic.subscribe({ capacity: 1, signal: {} as AbortSignal })).toThrow(TypeError);
  expect(topic.subscribers).toBe(0);
});

it("settles a publish and a take in the same number of turns whether they waited or not", async () => {
  const topic = new Broadcast<number>();
  const sub = topic.subscribe({ capacity: 1 });
  const fastPublish = await turnsUntil(topic.publish(1));
  const slow = topic.publish(2);
  const fastTake = await turnsUntil(sub.take());
  expect(await turnsUntil(slow)).toBeLessThanOrEqual(fastPublish);
  await sub.take();
  const waited = sub.take();
  topic.offer(3);
  expect(await turnsUntil(waited)).toBe(fastTake);
});

it("keeps I1 to I3 under any plan of publishers, readers, newcomers and leavers", () => {
  const step = fc.constantFrom("publish", "publish", "publish", "take", "take", "join", "leave", "abort", "turn");
  const policy = fc.constantFrom("wait", "drop-newest", "drop-oldest", "reject");
  const plans = fc.asyncProperty(
    fc.integer({ min: 0, max: 2 }),
    fc.array(fc.record({ step, policy, at: fc.nat({ max: 5 }) }), { maxLength: 60 }),
    play,
  );
  return fc.assert(plans, { numRuns: 500 });
});

interface Move {
  readonly step: string;
  readonly policy: "wait" | "drop-newest" | "drop-oldest" | "reject";
  readonly at: number;
}

async function play(replay: number, plan: readonly Move[]): Promise<void> {
  const topic = new Broadcast<number>({ replay });
  const subs: { readonly policy: string; readonly sub: ReturnType<typeof topic.subscribe>; readonly seen: number[] }[] =
    [];
  const published: number[] = [];
  let call = new AbortController();
  for (const [id, { step, policy, at }] of plan.entries()) {
    const chosen = subs[at % Math.max(1, subs.length)];
    if (step === "publish")
      topic
        .publish(id, call)
        .then(() => published.push(id))
        .catch(() => {});
    else if (step === "take") {
      const item = chosen?.sub.poll();
      if (item !== undefined) chosen?.seen.push(item);
    } else if (step === "join")
      subs.push({ policy, sub: topic.subscribe({ capacity: 2, whenFull: policy }), seen: [] });
    else if (step === "leave") chosen?.sub.close();
    else if (step === "abort") call = (call.abort(), new AbortController());
    else await turn();
    const open = subs.filter(({ sub }) => !sub.closed);
    const isHeld = open.some((each) => each.policy === "wait" && each.sub.size === each.sub.capacity);
    expect(topic.stats().waitingPublishers > 0 && !isHeld).toBe(false); // I2
    expect(topic.subscribers).toBe(open.length);
  }
  topic.close();
  await turn();
  expect(published).toEqual(published.toSorted((a, b) => a - b)); // I1
  for (const { policy, sub, seen } of subs) {
    for (let item = sub.poll(); item !== undefined; item = sub.poll()) seen.push(item);
    const from = published.indexOf(seen[0] ?? -1);
    const span = published.slice(from, from + seen.length);
    if (policy === "wait" || policy === "reject") expect(seen).toEqual(from === -1 ? [] : span); // no gap
    expect(seen).toEqual(seen.toSorted((a, b) => a - b));
    expect(new Set(seen).size).toBe(seen.length);
  }
}

const cases = abortCases({
  name: "Broadcast.publish",
  open(clock) {
    const topic = new Broadcast<number>({ clock });
    const sub = topic.subscribe({ capacity: 1 });
    topic.offer(0);
    return {
      call: (options) => topic.publish(1, options),
      satisfy: () => sub.poll(),
      state: () => ({ size: sub.size, waiting: topic.stats().waitingPublishers }),
      giveBack: () => sub.poll(),
    };
  },
});
for (const { title, run } of cases) it(title, run);

async function readAll<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

async function turnsUntil(promise: Promise<unknown>): Promise<number> {
  let turns = 0;
  const settled = promise.then(() => turns);
  const tick = (): void => {
    turns += 1;
    if (turns < 20) queueMicrotask(tick);
  };
  queueMicrotask(tick);
  return settled;
}
