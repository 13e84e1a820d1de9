import { expect, it } from "vitest";
import { turn } from "../testing/turn.ts";
import { forEachLimit } from "./for-each-limit.ts";

it("resolves with nothing when the source has ended and all calls have", async () => {
  const log: string[] = [];
  const all = forEachLimit(["a", "b", "c"], 2, async (item, { index }) => {
    await turn();
    log.push(`${index}${item}`);
    return item;
  });
  expect(log).toEqual([]);
  expect(await all).toBeUndefined();
  expect(log).toEqual(["0a", "1b", "2c"]);
  expect(await forEachLimit([], 2, turn)).toBeUndefined();
});

it("reads an endless source no faster than its work is done, and ends with its signal", async () => {
  const stop = new AbortController();
  const reason = new Error("enough");
  let [read, done, closed] = [0, 0, false];
  const endless = (async function* (): AsyncGenerator<number> {
    try {
      for (;;) yield (read += 1);
    } finally {
      closed = true;
    }
  })();
  const all = forEachLimit(
    endless,
    4,
    async () => {
      await turn();
      done += 1;
      expect(read - done).toBeLessThanOrEqual(4);
      if (done === 1_000) stop.abort(reason);
    },
    { signal: stop.signal },
  );
  await expect(all).rejects.toBe(reason);
  await turn();
  await turn();
  expect([closed, done <= 1_003, read <= 1_004]).toEqual([true, true, true]);
});

it("rejects with the first error, and starts nothing more", async () => {
  const started: number[] = [];
  const all = forEachLimit([1, 2, 3, 4], 2, async (item) => {
    started.push(item);
    await turn();
    if (item === 1) throw new Error("one");
  });
  await expect(all).rejects.toThrow("one");
  await turn();
  expect(started).toEqual([1, 2]);
});

it("aborts what runs at the first error, and tells of a later one", async () => {
  const [first, late] = [new Error("first"), new Error("late")];
  const told: unknown[] = [];
  const reasons: unknown[] = [];
  const all = forEachLimit(
    [1, 2, 3],
    2,
    async (item, { signal }) => {
      await turn();
      if (item === 1) throw first;
      reasons.push(signal.reason);
      throw late;
    },
    { onLateError: (error) => told.push(error) },
  );
  await expect(all).rejects.toBe(first);
  await turn();
  expect([reasons, told]).toEqual([[first], [late]]);
});
