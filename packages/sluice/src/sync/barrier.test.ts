import { getEventListeners } from "node:events";
import { setImmediate as turn } from "node:timers/promises";
import { expect, it, onTestFinished } from "vitest";
import { BrokenBarrierError, MiscountError, TimeoutError } from "../errors.ts";
import { namedEntries } from "../internal/names.ts";
import { setNotice } from "../internal/probe.ts";
import { abortCases } from "../testing/abort-suite.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { Barrier, type BarrierOptions } from "./barrier.ts";

const waitCases = ["Barrier.wait", "BarrierParty.wait"].flatMap((name) =>
  abortCases({
    name,
    open(clock) {
      const barriers: Barrier[] = []; // one for each call: an abort breaks it
      let spare = 0; // the other party of the next has come already
      return {
        async call(options) {
          const barrier = new Barrier(name === "Barrier.wait" ? 2 : 1, { clock });
          const party = name === "Barrier.wait" ? barrier : barrier.register();
          if (spare > 0) barrier.arrive();
          barriers.push(barrier);
          await party.wait(options);
          if (barrier.generation === 1 && spare > 0) spare -= 1;
        },
        satisfy() {
          const barrier = barriers.find(({ waiting }) => waiting > 0);
          if (barrier === undefined) spare += 1;
          else barrier.arrive();
        },
        state: () => ({ spare, waiting: barriers.reduce((sum, { waiting }) => sum + waiting, 0) }),
        giveBack: () => void (spare += 1),
      };
    },
  }),
);
const runCases = abortCases({
  name: "Barrier.run",
  lacks: { waiting: "it calls fn at once, as a party more", timeoutMs: "it never waits" },
  open() {
    const barrier = new Barrier(0);
    const running: (() => void)[] = [];
    const work = (): Promise<void> => new Promise((resolve) => void running.push(resolve));
    return {
      call: (options) => barrier.run(work, options),
      satisfy: () => running.shift()?.(),
      state: () => ({ parties: barrier.parties }),
    };
  },
});
for (const { title, run } of [...waitCases, ...runCases]) it(title, run);

it("lets nobody on before the last party has come, then all in the order they came, each with its index", async () => {
  const barrier = new Barrier(3);
  const passed: [string, number, number][] = [];
  const arrive = async (name: string): Promise<void> => {
    const { generation, index } = await barrier.wait();
    passed.push([name, generation, index]);
  };
  const first = [arrive("a"), arrive("b")];
  await turn();
  expect([passed, barrier.arrived, barrier.waiting]).toEqual([[], 2, 2]);
  await Promise.all([...first, arrive("c")]);
  const inOrder = [
    ["a", 0, 0],
    ["b", 0, 1],
    ["c", 0, 2],
  ];
  expect([passed, barrier.arrived, barrier.generation]).toEqual([inOrder, 0, 1]);
});

it("lets a single party pass at once, round after round", async () => {
  const barrier = new Barrier(1);
  const rounds = [await barrier.wait(), await barrier.wait({ timeoutMs: 0 }), await barrier.wait()];
  expect(rounds.map(({ generation }) => generation)).toEqual([0, 1, 2]);
});

it("never mixes rounds, though the fast arrive for the next before the slow have left the last", async () => {
  const barrier = new Barrier(3);
  const rounds = 50;
  const seen = Array.from({ length: rounds }, () => new Set<number>());
  const party = async (id: number): Promise<void> => {
    for (let round = 0; round < rounds; round += 1) {
      for (let turns = 0; turns < (id * round) % 4; turns += 1) await Promise.resolve();
      const { generation } = await barrier.wait();
      expect(generation).toBe(round);
      seen[round]?.add(id);
    }
  };
  await Promise.all([1, 2, 3].map(party));
  expect(seen.every(({ size }) => size === 3)).toBe(true);
  expect(barrier.stats()).toMatchObject({ rounds, arrived: 0, waiting: 0, extra: 0 });
});

it("runs the action once a round, when all have come and before anybody goes on", async () => {
  const log: string[] = [];
  const action = (generation: number): void => void log.push(`action ${generation}, ${barrier.waiting} wait`);
  const barrier = new Barrier(2, { action });
  for (let round = 0; round < 2; round += 1)
    await Promise.all(["a", "b"].map((name) => barrier.wait().then(() => log.push(name))));
  expect(log).toEqual(["action 0, 2 wait", "a", "b", "action 1, 2 wait", "a", "b"]);
});

it("waits for an action that takes time", async () => {
  const { promise, resolve: finish } = Promise.withResolvers<void>();
  const barrier = new Barrier(2, { action: () => promise });
  let passed = 0;
  const both = [barrier.wait(), barrier.wait()].map((wait) => wait.then(() => (passed += 1)));
  await turn();
  expect([passed, barrier.stats()]).toMatchObject([0, { acting: true, arrived: 0, generation: 1, rounds: 0 }]);
  finish();
  await Promise.all(both);
  expect([passed, barrier.stats()]).toMatchObject([2, { acting: false, rounds: 1 }]);
});

it.each(["throws", "rejects"])("breaks for everybody when the action %s, and tells the last its error", async (how) => {
  const failure = new Error("disk full");
  const reject = (): Promise<never> => Promise.reject(failure);
  const actions: Record<string, () => unknown> = { throws: fail, rejects: reject };
  function fail(): never {
    throw failure;
  }
  const barrier = new Barrier(2, { action: actions[how] });
  const [first, last] = await Promise.allSettled([barrier.wait(), barrier.wait()]);
  expect(first).toMatchObject({
    status: "rejected",
    reason: { code: "BROKEN_BARRIER", generation: 0, cause: failure },
  });
  expect(last).toEqual({ status: "rejected", reason: failure });
  expect(barrier.stats()).toMatchObject({ broken: true, breaks: 1, rounds: 0, acting: false });
  await expect(barrier.wait()).rejects.toThrow(BrokenBarrierError);
});

it("is usable again when it is reset after its action has failed", async () => {
  const barrier = new Barrier(2, {
    action: (generation) => (generation === 0 ? Promise.reject(new Error("full")) : 1),
  });
  await Promise.allSettled([barrier.wait(), barrier.wait()]);
  expect(barrier.isBroken).toBe(true);
  barrier.reset();
  const indexes = (await Promise.all([barrier.wait(), barrier.wait()])).map(({ index }) => index);
  expect([barrier.isBroken, indexes, barrier.stats().rounds]).toEqual([false, [0, 1], 1]);
});

it("F11.1: breaks for everybody when one that waits aborts, and names who is missing", async () => {
  const barrier = new Barrier(2);
  const missing = barrier.register("parser");
  const call = new AbortController();
  const waits = Promise.allSettled([barrier.wait({ signal: call.signal }), barrier.wait()]);
  call.abort(new Error("gave up"));
  expect(barrier.waiting).toBe(0);
  const [aborted, other] = await waits;
  expect(aborted).toEqual({ status: "rejected", reason: call.signal.reason });
  expect(other).toMatchObject({ reason: { generation: 0, missing: "parser", cause: call.signal.reason } });
  await expect(missing.wait()).rejects.toThrow("round 0 of the barrier is broken; missing: parser");
});

it("F11.1: breaks for everybody when one comes with a signal that has aborted", async () => {
  const barrier = new Barrier(2);
  const other = expect(barrier.wait()).rejects.toMatchObject({ code: "BROKEN_BARRIER", cause: "gone" });
  await expect(barrier.wait({ signal: AbortSignal.abort("gone") })).rejects.toBe("gone");
  await other;
});

it("F11.1: breaks for the others when the function of a party fails, and lets them go on when it returns early", async () => {
  const failure = new Error("bad row");
  const barrier = new Barrier(1);
  const other = barrier.wait();
  const failing = barrier.run(async () => {
    await turn();
    throw failure;
  });
  // The other has passed: it was complete before this party came. In the next round they are two.
  await other;
  const broken = expect(barrier.wait()).rejects.toMatchObject({ cause: failure });
  await expect(failing).rejects.toBe(failure);
  await broken;
  barrier.reset();
  const early = barrier.run(async ({ party }) => {
    await party.wait();
    return "enough";
  });
  await barrier.wait();
  const alone = barrier.wait(); // before the party has left
  expect(await early).toBe("enough");
  expect([await alone, barrier.parties]).toEqual([{ generation: 3, index: 0 }, 1]);
});

it("F11.5: two barriers that are entered in opposite order end by a timeout, and nobody waits on", async () => {
  const clock = new VirtualClock();
  const [red, blue] = [new Barrier(2, { clock }), new Barrier(2, { clock })];
  const both = Promise.allSettled([through(red, blue, 100), through(blue, red)]);
  await clock.advance(99);
  const fault = [red.stats(), blue.stats()];
  expect(fault).toMatchObject(
    Array.from({ length: 2 }, () => ({ arrived: 1, missing: "1 unnamed", oldestWaitMs: 99 })),
  );
  await clock.advance(1);
  const codes = (await both).map((each) => each.status === "rejected" && each.reason.code);
  expect([codes, red.waiting, blue.waiting]).toEqual([["TIMEOUT", "BROKEN_BARRIER"], 0, 0]);
});

/** Who gives up on one tells those who will wait for it at the other. */
async function through(first: Barrier, second: Barrier, timeoutMs?: number): Promise<void> {
  try {
    await first.wait({ timeoutMs });
    await second.wait({ timeoutMs });
  } catch (error) {
    second.fail(error);
    throw error;
  }
}

it("breaks for everybody when one times out, whether the others wait with a limit or not", async () => {
  const clock = new VirtualClock();
  const barrier = new Barrier(4, { clock });
  const limits = [undefined, 200, 50];
  const outcomes = Promise.allSettled(limits.map((timeoutMs) => barrier.wait({ timeoutMs })));
  await clock.advance(50);
  const reasons = (await outcomes).map((each) => (each.status === "rejected" ? each.reason : undefined));
  expect(reasons.map(({ code }) => code)).toEqual(["BROKEN_BARRIER", "BROKEN_BARRIER", "TIMEOUT"]);
  expect(reasons[0].cause).toBe(reasons[2]);
  expect([clock.timers, barrier.stats()]).toMatchObject([0, { timedOut: 1, aborted: 0, breaks: 1, waiting: 0 }]);
});

it("does not arrive when it would have to wait and timeoutMs is 0", async () => {
  const barrier = new Barrier(2);
  await expect(barrier.wait({ timeoutMs: 0 })).rejects.toThrow(TimeoutError);
  expect(barrier.stats()).toMatchObject({ arrived: 0, broken: false });
  const first = barrier.wait();
  expect((await barrier.wait({ timeoutMs: 0 })).index).toBe(1);
  await first;
});

it("refuses an action that is no function", () => {
  const options = { action: "sum" } as unknown as BarrierOptions;
  expect(() => new Barrier(2, options)).toThrow("action must be a function, got string");
});

it("neither arrives nor breaks for bad options", async () => {
  const barrier = new Barrier(2);
  const signal = AbortSignal.abort();
  for (const bad of [{ timeoutMs: -1 }, { timeoutMs: Number.NaN, signal }, { signal: {} }, null])
    await expect(barrier.wait(bad as object)).rejects.toThrow(/timeoutMs|signal|null/);
  expect(barrier.stats()).toMatchObject({ arrived: 0, broken: false, waiting: 0 });
  expect(() => new Barrier(-1)).toThrow("parties must be an integer >= 0, got -1");
});

it("turns everybody away while it is broken, and starts anew when it is reset", async () => {
  const barrier = new Barrier(2);
  const first = barrier.wait();
  barrier.fail(new Error("first"));
  barrier.fail(new Error("second"));
  await expect(first).rejects.toMatchObject({ cause: { message: "first" } });
  await expect(barrier.wait()).rejects.toMatchObject({ cause: { message: "first" } });
  expect(() => barrier.arrive()).toThrow(BrokenBarrierError);
  barrier.reset();
  const [a, b] = await Promise.all([barrier.wait(), barrier.wait()]);
  expect([a, b, barrier.isBroken]).toEqual([{ generation: 1, index: 0 }, { generation: 1, index: 1 }, false]);
});

it("tells those who wait when it is reset, and lets them come again", async () => {
  const barrier = new Barrier(2);
  const first = barrier.wait();
  barrier.reset();
  await expect(first).rejects.toMatchObject({ code: "BROKEN_BARRIER", cause: { message: "the barrier was reset" } });
  expect(barrier.stats()).toMatchObject({ broken: false, breaks: 1, arrived: 0, generation: 1 });
  await Promise.all([barrier.wait(), barrier.wait()]);
});

it("stays unbroken after a reset, though the functions of its parties fail by what they are told of it", async () => {
  const barrier = new Barrier(1);
  const parties = Promise.allSettled([1, 2].map(() => barrier.run(({ party }) => party.wait())));
  await turn();
  expect(barrier.waiting).toBe(2);
  barrier.reset();
  const codes = (await parties).map((each) => each.status === "rejected" && each.reason.code);
  expect(codes).toEqual(["BROKEN_BARRIER", "BROKEN_BARRIER"]);
  expect([barrier.isBroken, barrier.parties, barrier.stats().breaks]).toEqual([false, 1, 1]);
});

it("changes nothing by a reset that nobody waits for", async () => {
  const barrier = new Barrier(2);
  barrier.reset();
  const both = await Promise.all([barrier.wait(), barrier.wait()]);
  expect([both[0].generation, barrier.stats().breaks]).toEqual([0, 0]);
});

it("tells the last party that its round was broken while its action ran, and ends that before the next", async () => {
  const { promise, resolve: finish } = Promise.withResolvers<void>();
  const started: number[] = [];
  const action = (generation: number): unknown => (
    started.push(generation),
    started.length === 1 ? promise : undefined
  );
  const barrier = new Barrier(2, { action });
  const broken = Promise.allSettled([barrier.wait(), barrier.wait()]);
  barrier.reset();
  const again = [barrier.wait(), barrier.wait()];
  await turn();
  expect([started, barrier.stats()]).toMatchObject([[0], { waiting: 2, acting: false }]);
  finish();
  const codes = (await broken).map((each) => each.status === "rejected" && each.reason.code);
  expect(codes).toEqual(["BROKEN_BARRIER", "BROKEN_BARRIER"]);
  expect((await Promise.all(again)).map(({ index }) => index)).toEqual([0, 1]);
  expect([started.length, barrier.stats()]).toMatchObject([2, { rounds: 1, breaks: 1, extra: 0 }]);
});

it("lets a failing action of a round that was reset break nothing but that round, and gives notice of it", async () => {
  const failed: unknown[][] = [];
  setNotice((...told) => void failed.push(told));
  onTestFinished(() => setNotice(undefined));
  const { promise, reject } = Promise.withResolvers<void>();
  const action = (generation: number): unknown => (generation === 0 ? promise : undefined);
  const barrier = new Barrier(2, { action });
  const broken = Promise.allSettled([barrier.wait(), barrier.wait()]);
  barrier.reset();
  const first = barrier.wait();
  const failure = new Error("late");
  reject(failure);
  const broke = { reason: { code: "BROKEN_BARRIER" } };
  expect(await broken).toMatchObject([broke, broke]);
  await turn();
  expect(failed).toEqual([["failed", barrier, failure]]);
  await Promise.all([first, barrier.wait()]);
  expect(barrier.stats()).toMatchObject({ broken: false, breaks: 1, rounds: 1 });
});

it("breaks for everybody when one gives up while the action runs", async () => {
  const { promise, resolve: finish } = Promise.withResolvers<void>();
  const barrier = new Barrier(3, { action: () => promise });
  const call = new AbortController();
  const waits = [barrier.wait({ signal: call.signal }), barrier.wait(), barrier.wait()];
  const outcomes = Promise.allSettled(waits);
  call.abort("gave up");
  expect(barrier.waiting).toBe(0);
  finish();
  const reasons = (await outcomes).map((each) => (each.status === "rejected" ? each.reason : undefined));
  expect(reasons).toMatchObject(["gave up", { cause: "gave up", missing: "" }, { cause: "gave up" }]);
});

it("ends the wait of the last party, too, when it gives up on an action that hangs", async () => {
  const clock = new VirtualClock();
  const failure = { code: "BROKEN_BARRIER", generation: 0 };
  for (const how of ["abort", "timeout"] as const) {
    const barrier = new Barrier(2, { action: () => new Promise(() => {}), clock });
    const call = new AbortController();
    const options = how === "abort" ? { signal: call.signal } : { timeoutMs: 10 };
    const outcomes = Promise.allSettled([barrier.wait(), barrier.wait(options)]);
    if (how === "abort") call.abort(new TimeoutError(10));
    else await clock.advance(10);
    expect(await outcomes).toMatchObject([{ reason: failure }, { reason: { code: "TIMEOUT" } }]);
    expect(barrier.stats()).toMatchObject({ broken: true, breaks: 1, rounds: 0, waiting: 0 });
    expect([clock.timers, getEventListeners(call.signal, "abort")]).toEqual([0, []]);
  }
});

it("breaks when a party is about to hear of its abort, though the last comes in the midst of that", async () => {
  const barrier = new Barrier(3);
  const call = new AbortController();
  let last: Promise<unknown> | undefined;
  call.signal.addEventListener("abort", () => {
    last = barrier.wait();
  });
  const outcomes = Promise.allSettled([barrier.wait(), barrier.wait({ signal: call.signal })]);
  call.abort("gone");
  expect(await outcomes).toMatchObject([{ reason: { code: "BROKEN_BARRIER" } }, { reason: "gone" }]);
  await expect(last).rejects.toThrow(BrokenBarrierError);
});

it("tells all who share a signal of its reason, not that another broke the round", async () => {
  const barrier = new Barrier(3);
  const { signal, abort } = controller();
  const outcomes = Promise.allSettled([barrier.wait({ signal }), barrier.wait({ signal })]);
  abort("shutdown");
  expect(await outcomes).toMatchObject([{ reason: "shutdown" }, { reason: "shutdown" }]);
  expect(barrier.stats()).toMatchObject({ aborted: 2, breaks: 1, broken: true });
});

it("keeps what was passed when the signal aborts in the turn of the last arrival", async () => {
  const barrier = new Barrier(2);
  const { signal, abort } = controller();
  const first = barrier.wait({ signal });
  const last = barrier.wait();
  abort("late");
  expect([await first, await last]).toEqual([
    { generation: 0, index: 0 },
    { generation: 0, index: 1 },
  ]);
  expect(barrier.isBroken).toBe(false);
});

it("F11.3: says in each round whom the others wait for, and how long they have waited", async () => {
  const clock = new VirtualClock();
  const barrier = new Barrier(0, { clock });
  const [quick, slow] = [barrier.register("quick"), barrier.register("slow")];
  for (let generation = 0; generation < 3; generation += 1) {
    const wait = quick.wait();
    await clock.advance(90);
    expect(barrier.stats()).toMatchObject({ generation, missing: "slow", oldestWaitMs: 90 });
    await Promise.all([wait, slow.wait()]);
  }
});

it("tells by name who has come, who is missing and since when", async () => {
  const clock = new VirtualClock();
  const barrier = new Barrier(2, { name: "layers", clock });
  const north = barrier.register("north");
  barrier.register("south");
  const settled = Promise.allSettled([north.wait(), barrier.wait()]);
  await clock.advance(40);
  expect(barrier.stats()).toEqual({
    parties: 4,
    arrived: 2,
    generation: 0,
    missing: "south, 1 unnamed",
    waiting: 2,
    oldestWaitMs: 40,
    acting: false,
    rounds: 0,
    broken: false,
    breaks: 0,
    extra: 0,
    timedOut: 0,
    aborted: 0,
  });
  barrier.fail(new Error("over"));
  await settled;
  const entry = namedEntries().find(({ name }) => name === "layers");
  expect([entry?.kind, entry?.target.deref()]).toEqual(["barrier", barrier]);
});

it("settles in the same number of turns for who waited and who came last", async () => {
  const barrier = new Barrier(2);
  const waited = barrier.wait();
  const last = barrier.wait();
  const both = [turnsUntil(waited), turnsUntil(last)];
  expect(await both[0]).toBe(await both[1]);
});

it("is waited for in vain by nobody when it is made for none", async () => {
  const barrier = new Barrier(0);
  await expect(barrier.wait()).rejects.toThrow(MiscountError);
  expect(() => barrier.arrive()).toThrow("nobody is to arrive: 0 of 0 parties have arrived");
});

function controller(): { readonly signal: AbortSignal; readonly abort: (reason: unknown) => void } {
  const call = new AbortController();
  return { signal: call.signal, abort: (reason) => call.abort(reason) };
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
