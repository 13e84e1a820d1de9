import { getEventListeners } from "node:events";
import { setImmediate as turn } from "node:timers/promises";
import { expect, it } from "vitest";
import { sleep } from "../clock/sleep.ts";
import { type AbortSubject, abortCases } from "../testing/abort-suite.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { failover } from "./failover.ts";
import { firstChunk } from "./first-chunk.ts";
import { hedge } from "./hedge.ts";

const subject: AbortSubject = {
  name: "firstChunk",
  lacks: { timeoutMs: "a signal with a deadline is one" },
  open() {
    const waiting = new Set<() => void>();
    let given = 0;
    return {
      call: async (options) => {
        const { promise, resolve } = Promise.withResolvers<IteratorResult<number>>();
        const give = (): void => resolve({ done: false, value: 1 });
        const end = Promise.resolve({ done: true, value: undefined } as const);
        const source = {
          [Symbol.asyncIterator]: () => ({
            next() {
              waiting.add(give);
              if (given > 0) [give].forEach((each) => (each(), (given -= 1)));
              return promise;
            },
            return: () => (waiting.delete(give), end),
          }),
        };
        const chunks = await firstChunk(source, options);
        await chunks.return?.();
      },
      satisfy() {
        const [next] = waiting;
        if (next === undefined) given += 1;
        else waiting.delete(next);
        next?.();
      },
      state: () => ({ waiting: waiting.size }),
    };
  },
};
for (const { title, run } of abortCases(subject)) it(title, run);

async function* tokens(name: string, firstMs: number, clock: VirtualClock, log: string[] = []): AsyncGenerator<string> {
  try {
    await sleep(firstMs, { clock });
    for (let i = 1; i <= 3; i += 1) {
      yield `${name}${i}`;
      await sleep(100, { clock });
    }
  } finally {
    log.push(`${name} closed at ${clock.now()}`);
  }
}

async function* broken(after: number): AsyncGenerator<number> {
  for (let i = 0; i < after; i += 1) yield i;
  throw new Error("broken");
}

async function* oneAndTwo(): AsyncGenerator<number> {
  yield 1;
  yield 2;
}

async function all<T>(chunks: AsyncIterable<T>): Promise<T[]> {
  const seen: T[] = [];
  for await (const chunk of chunks) seen.push(chunk);
  return seen;
}

it("J57: decides a hedge by the first chunk: the winner streams on, the loser is cancelled", async () => {
  const clock = new VirtualClock();
  const log: string[] = [];
  const policy = hedge({ hedgeAfterMs: 100, clock });
  const result = policy
    .run(({ attempt, signal }) => firstChunk(tokens(`${attempt}-`, attempt === 1 ? 500 : 50, clock, log), { signal }))
    .then(async (chunks) => {
      log.push(`answer at ${clock.now()}`);
      return await all(chunks);
    });
  await clock.advance(1_000);
  expect(await result).toEqual(["2-1", "2-2", "2-3"]);
  // A generator that sleeps can be closed no earlier than it wakes; nothing of it is read.
  expect(log).toEqual(["answer at 150", "2- closed at 450", "1- closed at 500"]);
  expect(policy.stats()).toMatchObject({ losers: 0, lateErrors: 0 });
});

it("fails over to the next when a stream fails before its first chunk, not after", async () => {
  const clock = new VirtualClock();
  const policy = failover([0, 2, 5], { clock });
  const chunks = await policy.run(({ target, signal }) => firstChunk(broken(target), { signal }));
  expect(await chunks.next()).toEqual({ done: false, value: 0 });
  expect(await chunks.next()).toEqual({ done: false, value: 1 });
  await expect(chunks.next()).rejects.toThrow("broken");
  expect([await chunks.next(), policy.stats().attempts]).toEqual([{ done: true, value: undefined }, 2]);
});

it("takes the end of an empty stream for an answer", async () => {
  const chunks = await firstChunk(
    (async function* () {
      // nothing
    })(),
  );
  expect(await all(chunks)).toEqual([]);
});

it("reads a ReadableStream, and cancels it with the reason of the abort, or when the loop is left", async () => {
  const cancelled: unknown[] = [];
  const stream = (): ReadableStream<number> => {
    let next = 0;
    return new ReadableStream({
      pull: (controller) => controller.enqueue((next += 1)),
      cancel: (reason) => void cancelled.push(reason),
    });
  };
  for await (const chunk of await firstChunk(stream())) if (chunk === 3) break;
  const call = new AbortController();
  const chunks = await firstChunk(stream(), call);
  expect(await chunks.next()).toEqual({ done: false, value: 1 });
  call.abort("gone");
  await expect(chunks.next()).rejects.toBe("gone");
  expect(cancelled).toEqual([undefined, "gone"]);
});

it("keeps watching its signal while it streams, and no longer", async () => {
  const { signal } = new AbortController();
  const listeners = (): number => getEventListeners(signal, "abort").length;
  const read = await firstChunk(oneAndTwo(), { signal });
  expect(listeners()).toBe(1);
  expect(await all(read)).toEqual([1, 2]);
  expect(listeners()).toBe(0);
  const failing = await firstChunk(broken(1), { signal });
  await failing.next();
  await expect(failing.next()).rejects.toThrow("broken");
  expect(listeners()).toBe(0);
  const left = await firstChunk(oneAndTwo(), { signal });
  await left.return?.();
  expect([listeners(), await left.next()]).toEqual([0, { done: true, value: undefined }]);
});

it("asks nothing of a source that has ended", async () => {
  let asked = 0;
  const source = {
    [Symbol.asyncIterator]: () => ({
      next() {
        asked += 1;
        return Promise.resolve(asked === 2 ? { done: true, value: undefined } : { done: false, value: asked });
      },
    }),
  } as AsyncIterable<number>;
  const chunks = await firstChunk(source);
  expect(await all(chunks)).toEqual([1]);
  expect([await chunks.next(), await chunks.return?.(), asked]).toEqual([
    { done: true, value: undefined },
    { done: true, value: undefined },
    2,
  ]);
});

it("rejects whoever waits for a chunk when the signal aborts, though the source hangs, and closes the source once", async () => {
  const call = new AbortController();
  let closed = 0;
  const hanging = {
    [Symbol.asyncIterator]: () => ({
      next: () => new Promise<IteratorResult<number>>(() => {}),
      return() {
        closed += 1;
        return Promise.reject(new Error("could not close"));
      },
    }),
  };
  const result = expect(firstChunk(hanging, call)).rejects.toBe("gone");
  await turn();
  call.abort("gone");
  await result;
  await turn();
  expect(closed).toBe(1);
});

it("closes a source that came too late, and does not ask it for anything", async () => {
  const clock = new VirtualClock();
  const log: string[] = [];
  const policy = hedge({ hedgeAfterMs: 10, clock });
  const asked: number[] = [];
  const source = (attempt: number): AsyncIterable<number> => ({
    [Symbol.asyncIterator]: () => ({
      next: () => Promise.resolve({ done: asked.push(attempt) > 2, value: attempt } as IteratorResult<number>),
      return: () => Promise.resolve({ done: true, value: log.push(`closed ${attempt}`) }),
    }),
  });
  const result = policy.run(async ({ attempt, signal }) => {
    await sleep(attempt === 1 ? 100 : 5, { clock }); // opens late, and doesn't heed the signal
    return await firstChunk(source(attempt), { signal });
  });
  await clock.advance(200);
  await (await result).return?.();
  expect([asked, log]).toEqual([[2], ["closed 1", "closed 2"]]);
  expect(policy.stats()).toMatchObject({ losers: 0, lateErrors: 0 });
});

it.each([
  ["throws", (): never => fail()],
  ["gives no promise", () => undefined as never],
])("ends all that wait on its signal, though a source that is to be cancelled %s", async (_, cancel) => {
  const call = new AbortController();
  const source = { getReader: () => ({ read: () => new Promise<never>(() => {}), cancel }) };
  const result = expect(firstChunk(source, call)).rejects.toBe("gone");
  const sleeper = expect(sleep(Infinity, call)).rejects.toBe("gone");
  call.abort("gone");
  await result;
  await sleeper;
});

it.each([
  ["throws instead of rejecting", (): never => fail(), "not now"],
  ["gives no result", () => Promise.resolve(undefined), "a result must be an object, got undefined"],
])("rejects, and watches no longer, if a source %s", async (_, next, message) => {
  const { signal } = new AbortController();
  const source = { [Symbol.asyncIterator]: () => ({ next }) } as unknown as AsyncIterable<number>;
  await expect(firstChunk(source, { signal })).rejects.toThrow(message);
  expect(getEventListeners(signal, "abort").length).toBe(0);
});

function fail(): never {
  throw new Error("not now");
}

it.each([undefined, null, [1], new Response("text"), "text"])(
  "refuses a source that is no stream: %s",
  async (source) => {
    await expect(firstChunk(source as never)).rejects.toThrow(
      `source must be an async iterable or a readable stream, got ${source === null ? "null" : typeof source}`,
    );
  },
);

it("refuses a signal that is none", async () => {
  await expect(firstChunk(new ReadableStream(), { signal: {} as AbortSignal })).rejects.toThrow(TypeError);
});
