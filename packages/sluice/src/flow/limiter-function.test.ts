import { setImmediate as turn } from "node:timers/promises";
import { expect, it } from "vitest";
import { QueueFullError } from "../errors.ts";
import type { RunContext } from "../policy.ts";
import { limiter } from "./limiter-function.ts";

it("is also to be had as one function", async () => {
  const limit = limiter(1, { capacity: 0 });
  const running = limit(() => turn("done"));
  await expect(limit(() => 1)).rejects.toThrow(QueueFullError);
  expect([limit.limiter.running, await running]).toEqual([1, "done"]);
});

it("J10: admits in order, and has counted a call out before its caller hears of it", async () => {
  const limit = limiter(2);
  const log: string[] = [];
  const call = async (id: number): Promise<void> => {
    await limit(async () => {
      log.push(`start ${id}`);
      await turn();
    });
    log.push(`end ${id}, ${limit.limiter.running} run`);
  };
  await Promise.all([call(1), call(2), call(3)]);
  expect(log).toEqual(["start 1", "start 2", "start 3", "end 1, 2 run", "end 2, 1 run", "end 3, 0 run"]);
});

it("J09: maps a list in order within the limit, hands on the index, and claims none twice", async () => {
  const limit = limiter(3);
  let [running, most] = [0, 0];
  const seen: number[] = [];
  const results = await limit.map(["a", "b", "c", "d", "e", "f", "g", "h"], async (letter, { index }) => {
    seen.push(index);
    most = Math.max(most, (running += 1));
    await turn();
    running -= 1;
    return `${letter}${index}`;
  });
  expect(results).toEqual(["a0", "b1", "c2", "d3", "e4", "f5", "g6", "h7"]);
  expect([seen, most]).toEqual([[0, 1, 2, 3, 4, 5, 6, 7], 3]);
});

it("hands in no more items at a time than there are slots, and shares these with others", async () => {
  const limit = limiter(2, { capacity: 2 });
  const log: string[] = [];
  const busy = limit(() => turn());
  const mapped = limit.map(Array.from({ length: 50 }).keys(), (item) => turn(item)); // no QueueFullError
  const other = limit(() => log.push("other")).then(() => log.push(`${limit.limiter.stats().completed < 20}`));
  expect((await mapped).length).toBe(50);
  await Promise.all([busy, other]);
  expect(log).toEqual(["other", "true"]);
});

it("says so of a function for a list that is none", async () => {
  await expect(limiter(2).map([1], {} as never)).rejects.toThrow("fn must be a function, got object");
});

it("D01: stops at the first failure: nothing further starts, and what runs is told by its signal", async () => {
  const limit = limiter(2);
  const started: number[] = [];
  const reasons: unknown[] = [];
  const failure = new Error("item 2");
  const mapped = limit.map([1, 2, 3, 4, 5, 6], async (item, { signal }) => {
    started.push(item);
    if (item === 2) throw failure;
    await new Promise<void>((resolve) => {
      signal.addEventListener("abort", () => {
        reasons.push(signal.reason);
        resolve();
      });
    });
  });
  await expect(mapped).rejects.toBe(failure);
  await limit.limiter.drain();
  expect([started, reasons]).toEqual([[1, 2], [failure]]);
});

it("K02: starts no item once the map has failed, though slots come free", async () => {
  const limit = limiter(4);
  const billed: number[] = [];
  const mapped = limit.map(Array.from({ length: 100 }).keys(), async (item) => {
    billed.push(item);
    await turn();
    if (item === 0) throw new Error("no");
  });
  await expect(mapped).rejects.toThrow("no");
  await limit.limiter.drain();
  await turn();
  expect(billed.length).toBeLessThanOrEqual(8);
  expect(limit.limiter.waiting).toBe(0);
});

it("aborts the items of a map with the limiter, and with the caller", async () => {
  const ends = [limiter(1), limiter(1)];
  const call = new AbortController();
  const outcomes = ends.map((limit) => {
    return limit.map([1, 2], obey, { signal: call.signal }).catch((error) => error);
  });
  ends[0]?.limiter.abort("limiter");
  expect(await outcomes[0]).toBe("limiter");
  call.abort("caller");
  expect(await outcomes[1]).toBe("caller");
});

it("J11: is a limit of its own each time, so that four limiters of 8 let 32 run", async () => {
  const work = Promise.withResolvers<void>();
  const limits = Array.from({ length: 4 }, () => limiter(8));
  const calls = limits.flatMap((limit) => Array.from({ length: 20 }, () => limit(() => work.promise)));
  expect(limits.reduce((sum, { limiter: { running } }) => sum + running, 0)).toBe(32);
  work.resolve();
  await Promise.all(calls);
});

/** Ends when its signal aborts, with the reason. */
function obey(_: unknown, { signal }: RunContext): Promise<never> {
  return new Promise((__, reject) => signal?.addEventListener("abort", () => reject(signal.reason)));
}
