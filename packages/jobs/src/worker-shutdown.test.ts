import { shutdown, type ShutdownReport } from "sluice";
import { expect, it } from "vitest";
import { clock, Desk, QUEUE, start, store, add } from "./worker.stage.ts";

/** As it is when all that can happen has. */
function reportOf(finished: Promise<ShutdownReport>): { readonly report: ShutdownReport | undefined } {
  const seen: { report: ShutdownReport | undefined } = { report: undefined };
  void finished.then((report) => (seen.report = report));
  return seen;
}

it("C178: stops within the time of its phase, whatever hangs, and gives back before the store is closed", async () => {
  const desk = new Desk();
  await add(1);
  const stopping = shutdown({ timeoutMs: 3_000, clock });
  const seen: unknown[] = [];
  stopping.add("worker", start(desk.handler));
  stopping.add("store", async () => seen.push(await store.stats(QUEUE)));
  await clock.advance(0);
  const finished = reportOf(stopping.stop());
  await clock.advance(999); // two thirds of the 1.5 s that it has: to drain
  expect(desk.contexts[0]?.signal.aborted).toBe(false);
  await clock.advance(1);
  expect(desk.contexts[0]?.signal.aborted).toBe(true);
  await clock.advance(500);
  expect(finished.report).toMatchObject({
    clean: true,
    targets: [{ name: "worker", tookMs: 1_400 }, { name: "store" }],
  });
  expect(seen).toMatchObject([{ ready: 1, running: 0 }]);
});

it("makes no use of time that it doesn't need", async () => {
  const stopping = shutdown({ timeoutMs: 600_000, clock });
  const desk = new Desk();
  await add(1, 2);
  stopping.add("worker", start(desk.handler));
  await clock.advance(0);
  const finished = reportOf(stopping.stop());
  desk.ends[0]!.resolve(undefined);
  await clock.advance(13_999);
  expect(finished.report).toBeUndefined();
  await clock.advance(1); // its own 10 s and 4 of 5 s
  expect(finished.report).toMatchObject({ clean: true, tookMs: 14_000 });
});

it("gives all back at once when a second signal asks for haste, before the store is closed", async () => {
  const desk = new Desk();
  await add(1, 2);
  const stopping = shutdown({ timeoutMs: 60_000, clock });
  stopping.add("worker", start(desk.handler));
  stopping.add("store", store);
  await clock.advance(0);
  void stopping.stop();
  await clock.advance(10);
  const settled: unknown[] = [];
  const settle = store.settle.bind(store);
  store.settle = async (settlements) => {
    const answers = await settle(settlements);
    settled.push(...settlements.map(({ kind }, index) => [kind, answers[index]]));
    return answers;
  };
  expect((await stopping.stopNow()).tookMs).toBe(10);
  expect(settled).toEqual([
    ["release", true],
    ["release", true],
  ]);
  expect(desk.contexts.map(({ signal }) => signal.aborted)).toEqual([true, true]);
});

it("aborts what runs in the turn in which haste is asked for, and asks the store to take it back in the next", async () => {
  const desk = new Desk();
  await add(1);
  const worker = start(desk.handler);
  await clock.advance(0);
  const haste = new AbortController();
  const stopping = worker.stop({ signal: haste.signal });
  await clock.advance(10);
  const asked: string[] = [];
  const settle = store.settle.bind(store);
  store.settle = (settlements) => {
    asked.push(...settlements.map(({ kind }) => kind));
    return settle(settlements);
  };
  haste.abort();
  expect(desk.contexts[0]?.signal.aborted).toBe(true);
  await Promise.resolve();
  expect(asked).toEqual(["release"]);
  await stopping;
});
