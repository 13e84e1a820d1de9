import { AsyncLocalStorage } from "node:async_hooks";
import { Readable } from "node:stream";
import * as fc from "fast-check";
import { expect, it } from "vitest";
import { CountingController } from "../testing/counting-signal.ts";
import { turn } from "../testing/turn.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { mapStream } from "./map-stream.ts";

it("gives results in the order of the items, at most `concurrency` calls at a time", async () => {
  const clock = new VirtualClock();
  let [running, peak] = [0, 0];
  const stream = mapStream([30, 10, 20, 5], 2, async (ms) => {
    peak = Math.max(peak, (running += 1));
    await elapse(clock, ms);
    running -= 1;
    return ms;
  });
  const results = readAll(stream);
  await clock.advance(200);
  expect(await results).toEqual([30, 10, 20, 5]);
  expect(peak).toBe(2);
});

it("gives results as they are ready when they need not be ordered", async () => {
  const clock = new VirtualClock();
  const fn = async (ms: number): Promise<number> => {
    await elapse(clock, ms);
    return ms;
  };
  const results = readAll(mapStream([30, 10, 25, 5], 2, fn, { ordered: false }));
  await clock.advance(200);
  expect(await results).toEqual([10, 30, 25, 5]); // 25 began when 10 had ended
});

it("starts nothing before the first read, and then no more than may be unread", async () => {
  let [started, read] = [0, 0];
  const source = (function* (): Generator<number> {
    for (;;) yield (read += 1);
  })();
  const stream = mapStream(source, 3, async () => (started += 1), { buffer: 2 });
  await turn();
  expect([started, read]).toEqual([0, 0]);
  expect(await stream.next()).toEqual({ done: false, value: 1 });
  await turn();
  await turn();
  expect([started, read]).toEqual([6, 6]); // one is read, 3 + 2 are not
  await stream.next();
  await turn();
  expect(started).toBe(7);
});

it("lets a slow item at the head hold up an ordered stream, but not an unordered one", async () => {
  const started: number[] = [];
  const fn = (item: number): Promise<unknown> => {
    started.push(item);
    return item === 0 ? new Promise(() => {}) : Promise.resolve(item);
  };
  const items = [0, 1, 2, 3, 4, 5];
  const ordered = mapStream(items, 2, fn);
  void ordered.next();
  for (let turns = 0; turns < 5; turns += 1) await turn();
  expect(started).toEqual([0, 1]);
  started.length = 0;
  const buffered = mapStream(items, 2, fn, { buffer: 3 });
  void buffered.next();
  for (let turns = 0; turns < 5; turns += 1) await turn();
  expect(started).toEqual([0, 1, 2, 3, 4]);
  const unordered = mapStream(items, 2, fn, { ordered: false });
  const seen: unknown[] = [];
  for (let read = 0; read < 5; read += 1) seen.push((await unordered.next()).value);
  expect(seen).toEqual([1, 2, 3, 4, 5]);
});

it("aborts what runs on an early break, and closes its source before the loop is left", async () => {
  const log: string[] = [];
  const source = (async function* (): AsyncGenerator<number> {
    try {
      for (let item = 0; ; item += 1) yield item;
    } finally {
      await turn();
      log.push("closed");
    }
  })();
  const late: unknown[] = [];
  const stream = mapStream(
    source,
    3,
    async (item, { signal }) => {
      if (item > 0) {
        await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason as Error)));
      }
      return item;
    },
    { onLateError: (error) => late.push(error) },
  );
  for await (const item of stream) {
    expect(item).toBe(0);
    await turn();
    break;
  }
  log.push("left");
  await turn();
  expect([log, late]).toEqual([["closed", "left"], []]);
  expect(await stream.next()).toEqual({ done: true, value: undefined });
});

it("gives what was ready before an error, then the error as it is, and then its end", async () => {
  const failure = new Error("item 2");
  const aborted: unknown[] = [];
  const stream = mapStream(
    [0, 1, 2, 3, 4],
    4,
    async (item, { signal }) => {
      signal.addEventListener("abort", () => aborted.push(signal.reason));
      if (item === 3) await new Promise(() => {});
      if (item === 2) throw failure;
      return item;
    },
    { buffer: 4 },
  );
  expect((await stream.next()).value).toBe(0);
  await turn();
  expect(aborted.every((reason) => reason === failure)).toBe(true);
  expect(aborted.length).toBe(5);
  expect((await stream.next()).value).toBe(1);
  await expect(stream.next()).rejects.toBe(failure);
  expect(await stream.next()).toEqual({ done: true, value: undefined });
});

it("rejects who waits at once when a later item fails", async () => {
  const stream = mapStream([0, 1], 2, (item) => (item === 0 ? new Promise(() => {}) : Promise.reject(new Error("1"))));
  const reads = [stream.next(), stream.next()];
  await expect(reads[0]).rejects.toThrow("1");
  expect(await reads[1]).toEqual({ done: true, value: undefined });
});

it("C048: rejects with the abort's reason though the source has ended, and drops what was ready", async () => {
  const clock = new VirtualClock();
  const call = new CountingController();
  const stream = mapStream([100, 100, 0], 2, (ms) => elapse(clock, ms), { signal: call.signal, buffer: 1 });
  const read = stream.next();
  await clock.advance(50);
  call.abort(new Error("half way"));
  await expect(read).rejects.toBe(call.signal.reason);
  expect([await stream.next(), call.listeners]).toEqual([{ done: true, value: undefined }, 0]);
  const idle = new CountingController();
  const unread = mapStream([1, 2, 3], 3, async (item) => item, { signal: idle.signal });
  await unread.next();
  await turn();
  expect(idle.listeners).toBe(0); // all has ended, though two results are unread
  const slow = mapStream([1, 2, 3, 4], 3, async (item) => item, { signal: idle.signal });
  await slow.next();
  await turn();
  expect(idle.listeners).toBe(1);
  idle.abort(new Error("dropped"));
  await expect(slow.next()).rejects.toBe(idle.signal.reason);
  expect(await unread.next()).toEqual({ done: false, value: 2 });
});

it("C046: passes on its source's own error, and does not close what has ended by itself", async () => {
  let returned = 0;
  const source: AsyncIterable<number> = {
    [Symbol.asyncIterator]: () => ({
      next: () => Promise.reject(new Error("the source is gone")),
      return: async () => ({ done: true, value: (returned += 1) }),
    }),
  };
  await expect(mapStream(source, 2, turn).next()).rejects.toThrow("the source is gone");
  expect(returned).toBe(0);
});

it("is read by several at a time, each of whom gets the next result", async () => {
  const stream = mapStream([1, 2, 3], 2, async (item) => item * 10);
  const reads = Array.from({ length: 5 }, () => stream.next());
  const values = (await Promise.all(reads)).map(({ done, value }) => (done === true ? "end" : value));
  expect(values).toEqual([10, 20, 30, "end", "end"]);
});

it("ends who waits when another one leaves", async () => {
  const stream = mapStream([1], 1, () => new Promise(() => {}));
  const read = stream.next();
  await stream.return?.();
  expect(await read).toEqual({ done: true, value: undefined });
});

it("reads a stream of the platform and is read as one, with each holding back the one before", async () => {
  let made = 0;
  const source = new ReadableStream<number>(
    {
      pull(controller) {
        made += 1;
        controller.enqueue(made);
      },
    },
    { highWaterMark: 0 },
  );
  const stream = mapStream(source as unknown as AsyncIterable<number>, 2, async (item) => `#${item}`);
  const readable = Readable.from(stream, { highWaterMark: 1 });
  const seen: unknown[] = [];
  for await (const item of readable) {
    seen.push(item);
    expect(made - seen.length).toBeLessThanOrEqual(5);
    if (seen.length === 20) break;
  }
  expect(seen).toEqual(Array.from({ length: 20 }, (_, index) => `#${index + 1}`));
});

it("refuses bad arguments when it is made, and starts nothing for a signal that has aborted", async () => {
  expect(() => mapStream([1], 0, turn)).toThrow("concurrency must be an integer >= 1, got 0");
  expect(() => mapStream([1], 1, turn, { buffer: -1 })).toThrow("buffer must be an integer >= 0, got -1");
  expect(() => mapStream(5 as unknown as number[], 1, turn)).toThrow("items must be iterable, got number");
  let started = 0;
  const stream = mapStream([1], 1, () => (started += 1), { signal: AbortSignal.abort("gone") });
  await expect(stream.next()).rejects.toBe("gone");
  expect([await stream.next(), started]).toEqual([{ done: true, value: undefined }, 0]);
  const closed: string[] = [];
  const source = {
    next: () => ({ done: true, value: 0 }),
    return: () => ({ done: true, value: closed.push("source") }),
  };
  const unread = mapStream({ [Symbol.iterator]: () => source }, 1, turn, { signal: AbortSignal.abort("gone") });
  await expect(unread.next()).rejects.toBe("gone");
  expect([await unread.return?.(), closed]).toEqual([{ done: true, value: undefined }, ["source"]]);
});

it("calls in the async context of whoever reads", async () => {
  const context = new AsyncLocalStorage<string>();
  const stream = mapStream([1, 2, 3, 4], 2, async () => {
    await turn();
    return context.getStore();
  });
  expect(await context.run("reader", () => readAll(stream))).toEqual(["reader", "reader", "reader", "reader"]);
});

it("loses and doubles nothing under any plan of reads, ends and turns, ordered or not", () => {
  const step = fc.constantFrom("read", "read", "end 0", "end 1", "turn");
  const plans = fc.asyncProperty(
    fc.boolean(),
    fc.integer({ min: 1, max: 3 }),
    fc.integer({ min: 0, max: 3 }),
    fc.array(step, { maxLength: 60 }),
    play,
  );
  return fc.assert(plans, { numRuns: 500 });
});

async function play(ordered: boolean, concurrency: number, buffer: number, plan: readonly string[]): Promise<void> {
  const items = Array.from({ length: 12 }, (_, item) => item);
  const running: { readonly item: number; readonly end: () => void }[] = [];
  const [started, ended, read]: [number[], number[], number[]] = [[], [], []];
  const fn = (item: number): Promise<number> => {
    started.push(item);
    return new Promise((resolve) => void running.push({ item, end: () => resolve(item) }));
  };
  const stream = mapStream(items, concurrency, fn, { ordered, buffer });
  const keep = (result: IteratorResult<number, undefined>): unknown => result.done !== true && read.push(result.value);
  const end = (at: number): void => {
    const [call] = running.splice(Math.min(at, running.length - 1), 1);
    if (call === undefined) return;
    ended.push(call.item);
    call.end();
  };
  for (const act of [...plan, ...items.flatMap(() => ["read", "end 1", "turn"]), "read", "turn"]) {
    if (act === "read") void stream.next().then(keep);
    else if (act === "turn") await turn();
    else end(Number(act.at(-1)));
    expect(running.length).toBeLessThanOrEqual(concurrency);
    if (act === "turn") expect(started.length - read.length).toBeLessThanOrEqual(concurrency + buffer);
  }
  expect(started).toEqual(items);
  expect(read).toEqual(ordered ? items : ended);
}

function elapse(clock: VirtualClock, ms: number): Promise<void> {
  return new Promise((onTimer) => void clock.setTimer(ms, { onTimer }));
}

async function readAll<T>(stream: AsyncIterable<T>): Promise<T[]> {
  const results: T[] = [];
  for await (const result of stream) results.push(result);
  return results;
}
