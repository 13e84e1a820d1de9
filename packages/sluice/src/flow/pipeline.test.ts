import * as fc from "fast-check";
import { expect, it } from "vitest";
import { ClosedError } from "../errors.ts";
import { namedEntries } from "../internal/names.ts";
import { turn } from "../testing/turn.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import type { DeadLetter } from "./pipeline-options.ts";
import { pipeline } from "./pipeline.ts";
import { Queue } from "./queue.ts";

it("takes items through all stages at the same time, each with its own workers", async () => {
  const clock = new VirtualClock();
  const peaks = { decode: gauge(), write: gauge() };
  const results = readAll(
    pipeline([1, 2, 3, 4, 5, 6])
      .stage("decode", peaks.decode.around(clock, 10), { buffer: 2 })
      .stage("write", peaks.write.around(clock, 20), { buffer: 2, workers: 2, ordered: true }),
  );
  await clock.advance(1_000);
  expect(await results).toEqual([1, 2, 3, 4, 5, 6]);
  expect([peaks.decode.peak, peaks.write.peak]).toEqual([1, 2]);
});

it("starts nothing before it is read, and reads no further than its buffers have room", async () => {
  let read = 0;
  const source = (function* (): Generator<number> {
    for (;;) yield (read += 1);
  })();
  const line = pipeline(source)
    .stage("a", async (item) => item, { buffer: 3 })
    .stage("b", () => new Promise<number>(() => {}), { buffer: 2 });
  await settle();
  expect(read).toBe(0);
  void line[Symbol.asyncIterator]().next();
  await settle();
  // b works on 1 beside its buffer of 2, a has workers + 1 results in hand beside its 3, and 1 has been read ahead
  expect([read, line.stats().size, line.stats().capacity]).toEqual([1 + 2 + 2 + 3 + 1, 5, 5]);
});

it("F06.1: names the slow stage as the bottleneck: what is before it is full, what comes after has nothing to do", async () => {
  const clock = new VirtualClock();
  const slowAt = async (slow: string): Promise<string> => {
    const ms = (name: string): number => (name === slow ? 100 : 1);
    const line = pipeline(endless(), { clock })
      .stage("decode", (item) => elapse(clock, ms("decode"), item), { buffer: 4 })
      .stage("transform", (item) => elapse(clock, ms("transform"), item), { buffer: 4 })
      .stage("write", (item) => elapse(clock, ms("write"), item), { buffer: 4 });
    const reading = readUntil(line, () => elapse(clock, ms("sink")));
    await clock.advance(2_000);
    const { bottleneck } = line.stats();
    const depths = line.stages().map(({ size }) => size);
    const at = ["decode", "transform", "write", "sink"].indexOf(slow);
    for (const [index, depth] of depths.entries()) {
      if (index <= at) expect(depth).toBe(4);
      else expect(depth).toBeLessThan(4);
    }
    line.close();
    await clock.advance(10_000);
    await reading;
    return bottleneck;
  };
  for (const stage of ["decode", "transform", "write", "sink"]) expect(await slowAt(stage)).toBe(stage);
});

it("F06.1: tells depth, age and counts of each stage, also by name", async () => {
  const clock = new VirtualClock();
  const line = pipeline(endless(), { clock, name: "orders" })
    .stage("parse", async (item) => item, { buffer: 2 })
    .stage("store", (item) => elapse(clock, 1_000, item), { buffer: 3, workers: 2, ordered: false });
  const reading = readUntil(line, turn);
  await clock.advance(500);
  const [first, second] = line.stages();
  expect(first).toMatchObject({
    name: "parse",
    size: 2,
    capacity: 2,
    workers: 1,
    running: 0,
    blocked: 2,
    oldestAgeMs: 500,
  });
  expect(second).toMatchObject({ name: "store", size: 3, capacity: 3, workers: 2, running: 2, taken: 2, succeeded: 0 });
  expect(line.stats()).toMatchObject({
    stages: 2,
    wholeStages: 0,
    size: 5,
    capacity: 5,
    running: 2,
    workers: 3,
    oldestAgeMs: 500,
    read: 10,
    delivered: 0,
    bottleneck: "store",
    closed: false,
  });
  const named = namedEntries().filter(({ name }) => name.startsWith("orders"));
  expect(named.map(({ kind, name }) => [kind, name])).toEqual([
    ["pipeline", "orders"],
    ["stage", "orders/parse"],
    ["stage", "orders/store"],
  ]);
  expect(named[2]?.target.deref()?.stats()).toEqual(line.stages()[1]);
  line.close();
  await clock.advance(10_000);
  await reading;
  expect(line.stats()).toMatchObject({
    size: 0,
    running: 0,
    read: 10,
    delivered: 10,
    bottleneck: "source",
    closed: true,
  });
});

it("F06.2: has no stage without a bound, and tells the sum of all", () => {
  const line = pipeline([1]);
  for (const buffer of [undefined, -1, 1.5, Infinity]) {
    expect(() => line.stage("a", turn, { buffer: buffer as number })).toThrow(/^buffer of stage a must be a/);
  }
  const whole = line.stage("a", turn, { buffer: 8 }).whole("b", (items) => items, { buffer: 16 });
  expect(whole.stats()).toMatchObject({ capacity: 24, wholeStages: 1 });
});

it("F06.3: refuses several workers until the order has been chosen, and counts what overtook", async () => {
  const clock = new VirtualClock();
  expect(() => pipeline([1]).stage("a", turn, { buffer: 1, workers: 2 } as never)).toThrow(
    "ordered of stage a must be true or false with 2 workers, got undefined",
  );
  const run = (ordered: boolean): readonly [Promise<number[]>, () => number | undefined] => {
    const line = pipeline([30, 10, 20, 5]).stage("wait", (ms) => elapse(clock, ms, ms), {
      buffer: 4,
      workers: 4,
      ordered,
    });
    return [readAll(line), () => line.stages()[0]?.outOfOrder];
  };
  const [[ordered, kept], [free, lost]] = [run(true), run(false)];
  await clock.advance(100);
  expect([await ordered, kept()]).toEqual([[30, 10, 20, 5], 0]);
  expect([await free, lost()]).toEqual([[5, 10, 20, 30], 3]);
});

it("F06.4: stops from the source to the sink: nothing more is read, and nothing that was read is lost", async () => {
  const clock = new VirtualClock();
  let [read, closed] = [0, false];
  const source = (async function* (): AsyncGenerator<number> {
    try {
      for (;;) {
        await elapse(clock, 1);
        yield (read += 1);
      }
    } finally {
      closed = true;
    }
  })();
  const line = pipeline(source)
    .stage("a", (item) => elapse(clock, 5, item), { buffer: 4, workers: 2, ordered: false })
    .stage("b", (item) => elapse(clock, 20, item), { buffer: 4 });
  const seen: number[] = [];
  const all = line.forEach((item) => seen.push(item));
  await clock.advance(200);
  const inside = read - seen.length;
  line.close();
  line.close();
  await clock.advance(1_000);
  await all;
  expect(inside).toBeGreaterThan(8);
  expect(seen.toSorted((a, b) => a - b)).toEqual(Array.from({ length: read }, (_, index) => index + 1));
  expect([closed, clock.timers]).toEqual([true, 0]);
});

it("F06.4: stops though its source, a list, can't be closed", async () => {
  const line = pipeline(Array.from({ length: 1_000 }, (_, item) => item)).stage("a", async (item) => item, {
    buffer: 2,
  });
  const seen: number[] = [];
  await line.forEach((item) => {
    seen.push(item);
    if (item === 3) line.close();
  });
  expect(seen.length).toBeLessThan(20);
  expect(seen).toEqual(Array.from({ length: line.stats().read }, (_, item) => item));
});

it("F06.4: a reader that leaves ends all at once, and closes the source before the loop is left", async () => {
  const log: string[] = [];
  const source = (async function* (): AsyncGenerator<number> {
    try {
      for (let item = 0; ; item += 1) yield item;
    } finally {
      await turn();
      log.push("source closed");
    }
  })();
  const late: unknown[] = [];
  const line = pipeline(source, { onLateError: (error) => late.push(error) })
    .stage(
      "a",
      async (item, { signal }) => {
        if (item < 2) return item;
        return new Promise<never>((_, reject) => {
          signal.addEventListener("abort", () => {
            log.push("a aborted");
            reject(signal.reason as Error);
          });
        });
      },
      { buffer: 1, workers: 2, ordered: true },
    )
    .stage("b", (item) => item, { buffer: 1 });
  for await (const item of line) if (item === 1) break;
  log.push("left");
  await settle();
  expect([log, late]).toEqual([["a aborted", "a aborted", "source closed", "left"], []]);
});

it("lets its reader leave though its source stays at the next item, or a whole stage does, and tells how that closes", async () => {
  const failure = new Error("not closed");
  const late: unknown[] = [];
  const log: string[] = [];
  const arrival = Promise.withResolvers<void>();
  const source = (async function* (): AsyncGenerator<number> {
    try {
      yield 1;
      await arrival.promise;
      yield 2;
    } finally {
      log.push("source closed");
    }
    throw failure;
  })();
  const buffered = { buffer: 1 };
  const line = pipeline(source, { onLateError: (error) => late.push(error) }).stage("a", (item) => item, buffered);
  for await (const _ of line) break;
  log.push("left");
  arrival.resolve();
  await settle();
  expect(log).toEqual(["left", "source closed"]);

  const stuck = pipeline([1]).whole("stuck", () => ({ [Symbol.asyncIterator]: () => waits() }), buffered);
  for await (const _ of stuck) break;

  const bare = pipeline(waits());
  for await (const _ of bare) break;
  expect(bare.stats().read).toBeGreaterThan(0);
  expect(late).toEqual([]);
});

it("fails with the name of a stage whose onError returns what is no path, and with the error as the cause", async () => {
  const failure = new Error("item 1");
  const line = pipeline([1], { onDeadLetter: () => {} }).stage(
    "charge",
    () => {
      throw failure;
    },
    { buffer: 1, onError: () => "skip" as "fail" },
  );
  await expect(readAll(line)).rejects.toMatchObject({
    name: "RangeError",
    message: "onError of stage charge must return fail or dead-letter, got skip",
    cause: failure,
  });
});

it("F06.5: sets aside what a stage could not do, beside the data, and goes on with the rest", async () => {
  const letters: DeadLetter[] = [];
  const line = pipeline(["1", "two", "3", "four"], { onDeadLetter: (letter) => letters.push(letter) })
    .stage("parse", parse, { buffer: 2, onError: "dead-letter" })
    .stage("double", (item) => item * 2, { buffer: 2 });
  expect(await readAll(line)).toEqual([2, 6]);
  expect(letters).toEqual([
    { stage: "parse", item: "two", error: new Error("no number: two") },
    { stage: "parse", item: "four", error: new Error("no number: four") },
  ]);
  expect([line.stats().deadLettered, line.stages()[0]]).toMatchObject([
    2,
    { succeeded: 2, deadLettered: 2, failed: 0 },
  ]);
});

it("F06.5: lets a stage decide for each error, waits for the sink of what is set aside, and fails with it", async () => {
  const order: string[] = [];
  const onDeadLetter = async ({ item }: DeadLetter): Promise<void> => {
    order.push(`aside ${String(item)}`);
    await settle();
    order.push(`kept ${String(item)}`);
    if (item === "lost") throw new Error("the sink is full");
  };
  const run = (items: string[]): Promise<number[]> =>
    readAll(pipeline(items, { onDeadLetter }).stage("parse", parse, { buffer: 1, onError: unlessFatal }));
  expect(await run(["bad", "1"])).toEqual([1]);
  expect(order).toEqual(["aside bad", "kept bad"]);
  await expect(run(["1", "fatal", "2"])).rejects.toThrow("no number: fatal");
  await expect(run(["lost", "2"])).rejects.toThrow("the sink is full");
  expect(() => pipeline(["1"]).stage("parse", parse, { buffer: 1, onError: "dead-letter" })).toThrow(
    "onError of stage parse needs a pipeline with onDeadLetter",
  );
});

it("fails with the first error as it is, at once, though nobody reads: what runs is aborted, the source closed", async () => {
  const failure = new Error("broken");
  const log: unknown[] = [];
  const source = (async function* (): AsyncGenerator<number> {
    try {
      for (let item = 0; ; item += 1) yield item;
    } finally {
      log.push("source closed");
    }
  })();
  const line = pipeline(source)
    .stage(
      "a",
      (item, { signal }) => {
        if (item < 2) return item;
        signal.addEventListener("abort", () => log.push(signal.reason));
        return new Promise<number>(() => {});
      },
      { buffer: 1 },
    )
    .stage("b", (item) => (item === 1 ? Promise.reject(failure) : item), { buffer: 1 });
  const results = line[Symbol.asyncIterator]();
  expect((await results.next()).value).toBe(0);
  await settle();
  expect(log).toEqual([failure, "source closed"]);
  await expect(results.next()).rejects.toBe(failure);
  expect((await results.next()).done).toBe(true);
  expect(line.stages()[1]).toMatchObject({ failed: 1 });
});

it("fails with the error of its source, of its reader, or of a stage that takes the whole", async () => {
  const brokenSource = (function* (): Generator<number> {
    yield 1;
    throw new Error("source");
  })();
  const pass = { buffer: 1 };
  await expect(readAll(pipeline(brokenSource).stage("a", (item) => item, pass))).rejects.toThrow("source");
  const reader = pipeline(endless()).stage("a", (item) => item, pass);
  await expect(reader.forEach(() => Promise.reject(new Error("reader")))).rejects.toThrow("reader");
  expect(reader.stats().closed).toBe(true);
  const whole = pipeline([1, 2]).whole("sort", () => Promise.reject(new Error("whole")), pass);
  await expect(readAll(whole.stage("b", (item) => item, pass))).rejects.toThrow("whole");
  expect(whole.stages()[0]).toMatchObject({ failed: 1, running: 0 });
});

it("aborts the call of its reader when a stage fails meanwhile", async () => {
  const reasons: unknown[] = [];
  const failure = Promise.withResolvers<number>();
  const line = pipeline([1, 2]).stage("a", (item) => (item === 1 ? item : failure.promise), { buffer: 1 });
  const all = line.forEach(async (_, { signal }) => {
    signal.addEventListener("abort", () => reasons.push(signal.reason));
    await new Promise(() => {});
  });
  await settle();
  failure.reject(new Error("two"));
  await expect(all).rejects.toThrow("two");
  expect(reasons).toEqual([new Error("two")]);
});

it("gives a whole-stream stage all items as one, marks it, and lets it leave out, batch or end early", async () => {
  const sorted = pipeline([3, 1, 2]).whole("sort", async (items) => (await readAll(items)).toSorted((a, b) => a - b), {
    buffer: 1,
  });
  const batched = pipeline([1, 2, 3, 4, 5]).whole("batch", batchesOfTwo, { buffer: 1 });
  expect([await readAll(sorted), await readAll(batched)]).toEqual([
    [1, 2, 3],
    [[1, 2], [3, 4], [5]],
  ]);
  expect(sorted.stages()[0]).toMatchObject({ whole: true, taken: 3, succeeded: 3, running: 0 });
  let closed = false;
  const source = (function* (): Generator<number> {
    try {
      for (;;) yield 1;
    } finally {
      closed = true;
    }
  })();
  const first = pipeline(source)
    .whole("first", firstTwo, { buffer: 1 })
    .stage("after", (item) => item, { buffer: 1 });
  expect(await readAll(first)).toEqual([1, 1]);
  await settle();
  expect(closed).toBe(true);
});

it("ends the wait of a whole-stream stage for its next item when all ends, so that it gives back what it holds", async () => {
  for (const isLeft of [true, false]) {
    const log: unknown[] = [];
    const holding = async function* (items: AsyncIterable<number>): AsyncGenerator<number> {
      try {
        yield* items;
      } catch (error) {
        log.push(error);
        throw error;
      } finally {
        log.push("given back");
      }
    };
    const call = new AbortController();
    const late: unknown[] = [];
    const source = new Queue<number>(1); // with nothing after its first item
    source.offer(1);
    const line = pipeline(source, { signal: call.signal, onLateError: (error) => late.push(error) });
    const results = line.whole("all", holding, { buffer: 1 })[Symbol.asyncIterator]();
    expect(await results.next()).toEqual({ done: false, value: 1 });
    await settle();
    if (isLeft) await results.return?.();
    else call.abort("enough");
    await settle();
    expect([log, late]).toEqual([[isLeft ? expect.any(ClosedError) : "enough", "given back"], []]);
  }
});

it("hands each item over with a buffer of 0", async () => {
  const line = pipeline([1, 2, 3])
    .stage("a", async (item) => item, { buffer: 0 })
    .stage("b", async (item) => item * 2, { buffer: 0 });
  expect([await readAll(line), line.stats().capacity]).toEqual([[2, 4, 6], 0]);
});

it("is read as it is without a stage, and once only", async () => {
  const line = pipeline([1, 2]);
  expect(await readAll(line)).toEqual([1, 2]);
  await expect(line.forEach(turn)).rejects.toThrow("a pipeline can be read once, or go on to one stage");
  const forked = pipeline([1]);
  forked.stage("a", turn, { buffer: 1 });
  expect(() => forked.stage("b", turn, { buffer: 1 })).toThrow(TypeError);
  expect(() => forked[Symbol.asyncIterator]()).toThrow(TypeError);
});

it("ends before it begins when it is closed or left before it is read", async () => {
  let read = 0;
  const source = (): Iterable<number> =>
    (function* () {
      yield (read += 1);
    })();
  const closed = pipeline(source()).stage("a", turn, { buffer: 1 });
  closed.close();
  const left = pipeline(source()).stage("a", turn, { buffer: 1 })[Symbol.asyncIterator]();
  await left.return?.();
  expect([await readAll(closed), await left.next(), read]).toEqual([[], { done: true, value: undefined }, 0]);
});

it("closes its source, which may hold something already, also when it ends before it begins", async () => {
  const closed: string[] = [];
  const source = (name: string): Iterable<number> => ({
    [Symbol.iterator]: () => ({
      next: () => ({ done: false, value: 1 }),
      return: () => ({ done: true, value: closed.push(name) }),
    }),
  });
  await pipeline(source("left"))[Symbol.asyncIterator]().return?.();
  const late: unknown[] = [];
  const onLateError = (error: unknown): unknown => late.push(error);
  const line = pipeline(source("aborted"), { signal: AbortSignal.abort("gone"), onLateError });
  await expect(line.stage("a", turn, { buffer: 1 }).forEach(turn)).rejects.toBe("gone");
  await settle();
  expect([closed, late]).toEqual([["left", "aborted"], []]);
});

it("refuses bad stages when they are added, and adds none of them", () => {
  const line = pipeline([1]);
  const ok = { buffer: 1 };
  expect(() => line.stage(5 as unknown as string, turn, ok)).toThrow("the name of a stage must be a string");
  expect(() => line.stage("a", 5 as unknown as () => void, ok)).toThrow("fn of stage a must be a function, got number");
  expect(() => line.whole("a", 5 as never, ok)).toThrow("fn of stage a must be a function, got number");
  expect(() => line.stage("a", turn, { buffer: 1, workers: 0, ordered: true })).toThrow(
    "workers of stage a must be an",
  );
  expect(() => line.stage("a", turn, { buffer: 1, onError: "ignore" as "fail" })).toThrow("onError of stage a must be");
  expect(() => pipeline(5 as unknown as number[])).toThrow("items must be iterable, got number");
  for (const name of ["onDeadLetter", "onLateError"])
    expect(() => pipeline([1], { [name]: 5 })).toThrow(`${name} must be a function, got number`);
  expect(line.stats().stages).toBe(0);
});

it("loses, doubles and reorders nothing under any shape of stages and any order of endings", () => {
  const stage = fc.record({
    workers: fc.integer({ min: 1, max: 3 }),
    buffer: fc.integer({ min: 0, max: 3 }),
    ordered: fc.boolean(),
  });
  const shapes = fc.asyncProperty(fc.array(stage, { minLength: 1, maxLength: 3 }), fc.nat(40), fc.nat(9), play);
  return fc.assert(shapes, { numRuns: 150 });
});

async function play(
  shape: readonly { readonly workers: number; readonly buffer: number; readonly ordered: boolean }[],
  length: number,
  pace: number,
): Promise<void> {
  const clock = new VirtualClock();
  const items = Array.from({ length }, (_, item) => item);
  let line = pipeline(items, { clock });
  for (const [index, options] of shape.entries()) {
    const fn = (item: number): number | Promise<number> =>
      (item + index) % 3 === 0 ? item : elapse(clock, (item * (pace + index)) % 7, item);
    line = line.stage(`stage ${index}`, fn, options);
  }
  const results = readAll(line);
  await clock.advance(2_000);
  const seen = await results;
  expect(seen.toSorted((a, b) => a - b)).toEqual(items);
  if (shape.every(({ workers, ordered }) => workers === 1 || ordered)) expect(seen).toEqual(items);
  expect(line.stats()).toMatchObject({ read: length, delivered: length, size: 0, running: 0 });
  for (const stats of line.stages()) expect([stats.succeeded, stats.blocked]).toEqual([length, 0]);
}

function parse(text: string): number {
  const value = Number(text);
  if (Number.isNaN(value)) throw new Error(`no number: ${text}`);
  return value;
}

function unlessFatal(_: unknown, item: string): "fail" | "dead-letter" {
  return item === "fatal" ? "fail" : "dead-letter";
}

function* endless(): Generator<number> {
  for (let item = 0; ; item += 1) yield item;
}

async function* batchesOfTwo(items: AsyncIterable<number>): AsyncGenerator<number[]> {
  let batch: number[] = [];
  for await (const item of items) {
    batch.push(item);
    if (batch.length < 2) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}

async function* firstTwo(items: AsyncIterable<number>): AsyncGenerator<number> {
  let count = 0;
  for await (const item of items) {
    yield item;
    if ((count += 1) === 2) return;
  }
}

/** How many run at a time, at most. */
function gauge(): { peak: number; around(clock: VirtualClock, ms: number): (item: number) => Promise<number> } {
  let running = 0;
  const seen = {
    peak: 0,
    around: (clock: VirtualClock, ms: number) => async (item: number) => {
      seen.peak = Math.max(seen.peak, (running += 1));
      await elapse(clock, ms);
      running -= 1;
      return item;
    },
  };
  return seen;
}

function elapse<T = void>(clock: VirtualClock, ms: number, value?: T): Promise<T> {
  return new Promise((resolve) => void clock.setTimer(ms, { onTimer: () => resolve(value as T) }));
}

async function readUntil(items: AsyncIterable<unknown>, pause: () => Promise<unknown>): Promise<void> {
  for await (const _ of items) await pause();
}

async function readAll<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

async function settle(): Promise<void> {
  for (let turns = 0; turns < 8; turns += 1) await turn();
}

/** Comes to its second item never. */
async function* waits(): AsyncGenerator<number> {
  yield 1;
  await new Promise(() => {});
}
