import { expect, it } from "vitest";
import { TimeoutError } from "../errors.ts";
import { abortCases } from "../testing/abort-suite.ts";
import { CountingController } from "../testing/counting-signal.ts";
import { turn } from "../testing/turn.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { fanOut } from "./fan-out.ts";
import type { BranchContext } from "./fan-out-types.ts";

it("starts all branches before it awaits any, and has each value by its name", async () => {
  const started: string[] = [];
  const branch = (name: string) => async (): Promise<string> => {
    started.push(name);
    await turn();
    return name.toUpperCase();
  };
  const outcome = fanOut({ user: branch("user"), orders: branch("orders"), plain: () => 7 });
  expect(started).toEqual(["user", "orders"]);
  const { values, complete, width, calls } = await outcome;
  expect([values, complete, width, calls]).toEqual([{ user: "USER", orders: "ORDERS", plain: 7 }, true, 3, 3]);
});

it("resolves at once with nothing to do", async () => {
  expect(await fanOut({})).toMatchObject({ values: {}, branches: {}, complete: true, width: 0, calls: 0 });
});

it("does without an optional branch that fails, and says so", async () => {
  const failure = new Error("no ads today");
  const { values, branches, complete } = await fanOut({
    page: async () => "page",
    ads: { run: () => Promise.reject(failure), optional: true },
    tips: { run: fail, optional: true, fallback: ["none"] },
  });
  expect(values).toEqual({ page: "page", ads: undefined, tips: ["none"] });
  expect(complete).toBe(false);
  expect(branches.page).toMatchObject({ status: "succeeded", error: undefined });
  expect(branches.ads).toMatchObject({ status: "failed", error: failure });
  expect(branches.tips).toMatchObject({ status: "failed", error: new Error("broken") });
});

it("F05.2: ends a branch that hangs at its own limit, or all at the deadline, and tells how long each took", async () => {
  const clock = new VirtualClock();
  let signal: AbortSignal | undefined;
  const limited = (context: BranchContext): Promise<never> => {
    signal = context.signal;
    return hang();
  };
  const outcome = fanOut(
    {
      quick: { run: () => elapse(clock, 20), timeoutMs: 100 },
      limited: { run: limited, optional: true, timeoutMs: 50, fallback: "late" },
      hanging: { run: hang, optional: true },
    },
    { clock, timeoutMs: 200 },
  );
  await clock.advance(30);
  expect(clock.timers).toBe(2); // that of `limited`, and the deadline
  await clock.advance(170);
  const { values, branches, durationMs } = await outcome;
  expect(values).toEqual({ quick: undefined, limited: "late", hanging: undefined });
  expect([branches.quick.durationMs, branches.limited.durationMs, branches.hanging.durationMs]).toEqual([20, 50, 200]);
  expect(branches.limited).toMatchObject({ status: "timed-out", error: { code: "TIMEOUT", timeoutMs: 50 } });
  expect(branches.hanging).toMatchObject({ status: "timed-out", error: { code: "TIMEOUT", timeoutMs: 200 } });
  expect(signal?.reason).toBe(branches.limited.error);
  expect([durationMs, clock.timers]).toEqual([200, 0]);
});

it("fails with a TimeoutError when a required branch reaches its limit or the deadline", async () => {
  const clock = new VirtualClock();
  const own = fanOut({ a: { run: untilAborted, timeoutMs: 50 }, b: untilAborted }, { clock, timeoutMs: 90 });
  const whole = fanOut({ a: hang, b: hang }, { clock, timeoutMs: 80 });
  const errors = Promise.allSettled([own, whole]);
  await clock.advance(80);
  const reasons = (await errors).map((each) => each.status === "rejected" && each.reason);
  expect(reasons).toEqual([new TimeoutError(50), new TimeoutError(80)]);
  expect(clock.timers).toBe(0);
});

it("F05.3: a required failure aborts the siblings and waits for them, so that no call is left behind", async () => {
  const failure = new Error("required");
  let inside = 0;
  let rejected = false;
  const release: (() => void)[] = [];
  const reasons: unknown[] = [];
  const sibling = async ({ signal }: BranchContext): Promise<void> => {
    inside += 1;
    await new Promise((resolve) => signal.addEventListener("abort", resolve));
    reasons.push(signal.reason);
    await new Promise<void>((resolve) => void release.push(resolve)); // gives its connection back
    inside -= 1;
  };
  const outcome = fanOut({ a: sibling, b: sibling, c: () => Promise.reject(failure) });
  const settled = outcome.catch((error: unknown) => {
    rejected = true;
    return [error, inside];
  });
  await turn();
  expect([reasons, inside, rejected]).toEqual([[failure, failure], 2, false]);
  release[0]?.();
  await turn();
  expect([inside, rejected]).toEqual([1, false]);
  release[1]?.();
  expect(await settled).toEqual([failure, 0]);
});

it("waits for siblings that ignore their abort no longer than the deadline", async () => {
  const clock = new VirtualClock();
  const outcome = fanOut({ deaf: hang, broken: () => Promise.reject(new Error("first")) }, { clock, timeoutMs: 100 });
  const error = outcome.catch((reason: unknown) => reason);
  await clock.advance(100);
  expect(await error).toEqual(new Error("first"));
  expect(clock.timers).toBe(0);
});

it("starts no further branch when one throws in the turn of the call", async () => {
  const started: string[] = [];
  const outcome = fanOut({
    a: ({ signal }) => {
      started.push("a");
      return untilAborted({ signal });
    },
    b: fail,
    c: () => started.push("c"),
  });
  await expect(outcome).rejects.toThrow("broken");
  expect(started).toEqual(["a"]);
});

it("rejects at once on the caller's abort, without waiting for its branches, and aborts these with the reason", async () => {
  const call = new CountingController();
  const late: unknown[] = [];
  const signals: AbortSignal[] = [];
  const outcome = fanOut(
    {
      deaf: ({ signal }) => {
        signals.push(signal);
        return new Promise(() => {});
      },
      polite: untilAborted,
      rude: ({ signal }) => untilAborted({ signal }).catch(() => fail()),
    },
    { signal: call.signal, onLateError: (error, branch) => late.push([branch, error]) },
  );
  call.abort(new Error("gone"));
  await expect(outcome).rejects.toBe(call.signal.reason);
  await turn();
  expect([signals[0]?.reason, late, call.listeners]).toEqual([call.signal.reason, [["rude", new Error("broken")]], 0]);
});

it("keeps the first error when the caller aborts while its siblings end", async () => {
  const call = new AbortController();
  const outcome = fanOut({ deaf: hang, broken: () => Promise.reject(new Error("first")) }, call);
  await turn();
  call.abort(new Error("second"));
  await expect(outcome).rejects.toThrow("first");
});

it("D06: tells onLateError what a branch that was given up does in the end, and what no outcome tells", async () => {
  const clock = new VirtualClock();
  const late: unknown[] = [];
  const onLateError = (error: unknown, branch: string): unknown => late.push([branch, (error as Error).message]);
  const slow = (ms: number, text: string) => async (): Promise<never> => {
    await elapse(clock, ms);
    throw new Error(text);
  };
  const partial = await Promise.all([
    fanOut({ a: { run: slow(90, "too late"), optional: true, timeoutMs: 50 } }, { clock, onLateError }),
    clock.advance(100),
  ]);
  expect(partial[0].branches.a.status).toBe("timed-out");
  expect(late).toEqual([["a", "too late"]]);
  const failed = fanOut(
    { early: { run: slow(10, "optional"), optional: true }, late: slow(30, "second"), first: slow(20, "first") },
    { clock, onLateError },
  );
  const error = failed.catch((reason: unknown) => reason);
  await clock.advance(50);
  expect(await error).toEqual(new Error("first"));
  expect(late.slice(1)).toEqual([
    ["early", "optional"],
    ["late", "second"],
  ]);
});

it("F05.5: five within five are 25 calls, and each says so", async () => {
  const outer = await fanOut(
    five(async () => {
      await turn();
      return fanOut(five(turn));
    }),
  );
  expect([outer.width, outer.calls]).toEqual([5, 25]);
  const inner = Object.values(outer.values).map(({ width, calls }) => [width, calls]);
  expect(inner).toEqual(Array.from({ length: 5 }, () => [25, 5]));
});

it("counts the calls of fan-outs one after the other, and none of a call beside it", async () => {
  const two = { x: turn, y: turn };
  const outer = await fanOut({
    twice: async () => {
      await fanOut(two);
      const deep = await fanOut({ ...two, z: () => fanOut(two) });
      return [deep.width, deep.calls];
    },
    none: () => fanOut({}),
  });
  expect([outer.values.twice, outer.calls]).toEqual([[6, 4], 7]); // 2 + 4 in place of `twice`, and `none`
  const beside = await fanOut(two);
  expect([beside.width, beside.calls]).toEqual([2, 2]);
});

it("C047: leaves no listener and no timer behind, whatever comes of it", async () => {
  const clock = new VirtualClock();
  const call = new CountingController();
  const options = { clock, signal: call.signal, timeoutMs: 1_000 };
  for (let round = 0; round < 50; round += 1) {
    await fanOut({ a: turn, b: { run: fail, optional: true, timeoutMs: 10 } }, options);
    await fanOut({ a: { run: untilAborted, timeoutMs: 10 }, b: fail }, options).catch(() => {});
  }
  expect([call.listeners, call.most, clock.timers]).toEqual([0, 1, 0]);
});

it("leaves no timer behind when the clock or the signal throws, and starts nothing", async () => {
  const clock = new VirtualClock();
  const broken = new AbortController().signal;
  broken.addEventListener = fail;
  let started = 0;
  const branches = { a: { run: () => (started += 1), timeoutMs: 5 } };
  await expect(fanOut(branches, { clock, signal: broken, timeoutMs: 5 })).rejects.toThrow("broken");
  expect([started, clock.timers]).toEqual([0, 0]);
});

it("refuses bad branches and options before it starts any", async () => {
  let started = 0;
  const a = (): number => (started += 1);
  await expect(fanOut({ a, b: 5 as never })).rejects.toThrow("branch b must be a function or have one as `run`");
  await expect(fanOut({ a, b: { run: a, timeoutMs: 0 } })).rejects.toThrow("timeoutMs of branch b must be >= 1, got 0");
  await expect(fanOut({ a }, { timeoutMs: -1 })).rejects.toThrow("timeoutMs must be >= 1, got -1");
  await expect(fanOut({ a }, { signal: {} as AbortSignal })).rejects.toThrow(TypeError);
  await expect(fanOut({ a }, { onLateError: 5 as never })).rejects.toThrow(
    "onLateError must be a function, got number",
  );
  await expect(fanOut({ a }, { signal: AbortSignal.abort("gone") })).rejects.toBe("gone");
  expect(started).toBe(0);
});

it("gives a branch by the name __proto__ its place", async () => {
  const { values } = await fanOut({ ["__proto__"]: () => 1 });
  expect(Object.entries(values)).toEqual([["__proto__", 1]]);
});

const cases = abortCases({
  name: "fanOut",
  lacks: { timeoutMs: "it is a limit on the branches, not on a wait" },
  open() {
    const inside = new Set<() => void>();
    const run = ({ signal }: BranchContext): Promise<void> =>
      new Promise((resolve) => {
        inside.add(resolve);
        signal.addEventListener("abort", () => inside.delete(resolve));
      });
    const finish = (): void => {
      const [oldest] = inside;
      if (oldest === undefined) return;
      inside.delete(oldest);
      oldest();
    };
    return {
      call: ({ signal }) => fanOut({ only: run }, { signal }),
      satisfy: finish,
      state: () => ({ inside: inside.size }),
    };
  },
});
for (const { title, run } of cases) it(title, run);

function five<T>(run: () => T): Record<string, () => T> {
  return Object.fromEntries(["a", "b", "c", "d", "e"].map((name) => [name, run]));
}

function fail(): never {
  throw new Error("broken");
}

function hang(): Promise<never> {
  return new Promise(() => {});
}

function untilAborted({ signal }: BranchContext): Promise<never> {
  return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason as Error)));
}

function elapse(clock: VirtualClock, ms: number): Promise<void> {
  return new Promise((onTimer) => void clock.setTimer(ms, { onTimer }));
}
