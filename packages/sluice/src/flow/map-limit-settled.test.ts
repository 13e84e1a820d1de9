import { expect, it } from "vitest";
import { turn } from "../testing/turn.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { mapLimitSettled } from "./map-limit-settled.ts";

it("J16: never rejects for an item, and has one record for each in the order of the items", async () => {
  const clock = new VirtualClock();
  const records = mapLimitSettled([30, 10, 20], 3, async (ms) => {
    await new Promise<void>((onTimer) => void clock.setTimer(ms, { onTimer }));
    if (ms === 10) throw new Error("ten");
    return ms;
  });
  await clock.advance(100);
  expect(await records).toEqual([
    { status: "fulfilled", value: 30 },
    { status: "rejected", reason: new Error("ten") },
    { status: "fulfilled", value: 20 },
  ]);
  expect(await mapLimitSettled([], 3, turn)).toEqual([]);
});

it("J16: keeps the same limit, and refuses the same concurrency", async () => {
  let [running, peak] = [0, 0];
  const records = await mapLimitSettled([1, 2, 3, 4, 5, 6, 7], 3, async (item) => {
    peak = Math.max(peak, (running += 1));
    await turn();
    running -= 1;
    if (item % 2 === 0) throw new Error("even");
  });
  expect([records.length, peak]).toEqual([7, 3]);
  await expect(mapLimitSettled([1], 0, turn)).rejects.toThrow("concurrency must be an integer >= 1, got 0");
});

it("C043: keeps the limit of 5 after a failure, and tries all 50 with one error", async () => {
  const clock = new VirtualClock();
  let [running, peak, tried] = [0, 0, 0];
  const records = mapLimitSettled(
    Array.from({ length: 50 }, (_, item) => item),
    5,
    async (item) => {
      tried += 1;
      peak = Math.max(peak, (running += 1));
      await new Promise<void>((onTimer) => void clock.setTimer(20, { onTimer }));
      running -= 1;
      if (item === 3) throw new Error("three");
    },
  );
  await clock.advance(1_000);
  const failed = (await records).filter(({ status }) => status === "rejected");
  expect([peak, tried, failed.length]).toEqual([5, 50, 1]);
});

it("A07: lets the rest go on, with its signal as it was, where a bare `all` leaves it running unseen", async () => {
  const signals: AbortSignal[] = [];
  const records = await mapLimitSettled([1, 2, 3], 3, async (item, { signal }) => {
    signals.push(signal);
    if (item === 1) throw new Error("one");
    await turn();
    if (item === 3) throw new Error("three");
  });
  expect(records.map(({ status }) => status)).toEqual(["rejected", "fulfilled", "rejected"]);
  expect(signals.some(({ aborted }) => aborted)).toBe(false);
});

it("records a synchronous throw as it does a rejection", async () => {
  const records = await mapLimitSettled([1, 2], 1, (item) => {
    if (item === 1) throw new Error("one");
    return item;
  });
  expect(records).toEqual([
    { status: "rejected", reason: new Error("one") },
    { status: "fulfilled", value: 2 },
  ]);
});

it("rejects for what is no item's fault: its source and its signal", async () => {
  await expect(mapLimitSettled(broken(), 2, turn)).rejects.toThrow("the source is gone");
  const call = new AbortController();
  const records = mapLimitSettled([1, 2, 3], 1, () => new Promise(() => {}), call);
  call.abort(new Error("enough"));
  await expect(records).rejects.toBe(call.signal.reason);
});

function* broken(): Generator<number> {
  yield 1;
  throw new Error("the source is gone");
}
