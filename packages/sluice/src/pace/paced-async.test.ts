import { getEventListeners } from "node:events";
import * as fc from "fast-check";
import { expect, it } from "vitest";
import { ClearedError, SupersededError } from "../errors.ts";
import { type AbortSubject, abortCases } from "../testing/abort-suite.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { debounceAsync, type DebounceAsyncOptions } from "./debounce-async.ts";
import { latest } from "./latest.ts";
import { throttleAsync } from "./throttle-async.ts";

const subject: AbortSubject = {
  name: "debounceAsync",
  lacks: { timeoutMs: "it waits for a pause" },
  open(clock) {
    const waiting: { flush(): unknown; pending(): boolean }[] = [];
    return {
      async call(options) {
        const save = debounceAsync(() => "saved", 1_000, { signal: options.signal, clock });
        waiting.push(save);
        return save();
      },
      satisfy: () => waiting.find((save) => save.pending())?.flush(),
      state: () => ({ waiting: waiting.filter((save) => save.pending()).length, timers: clock.timers }),
    };
  },
};
for (const { title, run } of abortCases(subject)) it(title, run);

interface Made {
  readonly clock: VirtualClock;
  readonly runs: string[];
  readonly ask: ReturnType<typeof debounceAsync<unknown, [number], string>>;
}

function make(options: DebounceAsyncOptions = {}): Made {
  const clock = new VirtualClock();
  const runs: string[] = [];
  const run = async (value: number): Promise<string> => {
    runs.push(`${clock.now()}(${value})`);
    if (value < 0) throw new Error(`bad ${value}`);
    return Promise.resolve(`answer to ${value}`);
  };
  return { clock, runs, ask: debounceAsync(run, 50, { clock, ...options }) };
}

/** What became of each, in words; `pending` for what has not settled within the turn. */
async function outcomes(calls: readonly Promise<unknown>[]): Promise<unknown[]> {
  const late = new Promise((resolve) => setImmediate(resolve, "pending"));
  return Promise.all(
    calls.map((call) => Promise.race([call.catch((error: Error) => error.name.replace("Error", "")), late])),
  );
}

it("C132: settles those who were superseded with the one result, and those who are cancelled or disposed of at once", async () => {
  const { clock, runs, ask } = make();
  const first = [ask(1), ask(2), ask(3)];
  await clock.advance(50);
  expect(await outcomes(first)).toEqual(["answer to 3", "answer to 3", "answer to 3"]);
  const second = ask(4);
  ask.cancel();
  expect(await outcomes([second])).toEqual(["Cleared"]);
  const third = ask(5);
  {
    using _ = ask;
  }
  await expect(third).rejects.toThrow(ClearedError);
  await clock.runToIdle();
  expect([runs, ask.pending(), clock.timers]).toEqual([["50(3)"], false, 0]);
});

it("rejects those who are superseded as soon as they are, if told so", async () => {
  const { clock, ask } = make({ superseded: "reject" });
  const calls = [ask(1), ask(2), ask(3)];
  expect(await outcomes(calls)).toEqual(["Superseded", "Superseded", "pending"]);
  await clock.advance(50);
  expect(await outcomes(calls)).toEqual(["Superseded", "Superseded", "answer to 3"]);
});

it("gives everybody whom a run took along its error", async () => {
  const { clock, ask } = make();
  const calls = [ask(1), ask(-2)];
  const checked = [expect(calls[0]).rejects.toThrow("bad -2"), expect(calls[1]).rejects.toThrow("bad -2")];
  await clock.advance(50);
  await Promise.all(checked);
  const next = ask(3);
  await clock.advance(50);
  expect(await next).toBe("answer to 3");
});

it("rejects with what the function throws at once, and never throws", async () => {
  const down = new Error("down");
  const save = debounceAsync(
    () => {
      throw down;
    },
    50,
    { leading: true, clock: new VirtualClock() },
  );
  await expect(save()).rejects.toBe(down);
});

it.each([
  ["join", ["answer to 1", "answer to 1"]],
  ["reject", ["answer to 1", "Superseded"]],
] as const)("settles a call that no run will take along, with superseded: %s", async (superseded, expected) => {
  const { ask } = make({ leading: true, trailing: false, superseded });
  expect(await outcomes([ask(1), ask(2)])).toEqual(expected);
});

it("rejects a call that no run could ever take along", async () => {
  const { ask } = make({ trailing: false });
  await expect(ask(1)).rejects.toThrow(SupersededError);
});

it("flushes with the result of the run, and with undefined if none waits", async () => {
  const { runs, ask } = make();
  expect(await ask.flush()).toBeUndefined();
  const call = ask(1);
  expect([await ask.flush(), await call, runs]).toEqual(["answer to 1", "answer to 1", ["0(1)"]]);
  expect(await ask.flush()).toBeUndefined();
});

it("lets a call that the function makes itself wait for a run of its own", async () => {
  const clock = new VirtualClock();
  const inner: Promise<string>[] = [];
  const ask = debounceAsync(
    (left: number): string => {
      if (left > 0) inner.push(ask(left - 1));
      return `${left} at ${clock.now()}`;
    },
    50,
    { clock, leading: true },
  );
  expect(await ask(1)).toBe("1 at 0");
  expect(await outcomes(inner)).toEqual(["pending"]);
  await clock.advance(50);
  expect(await outcomes(inner)).toEqual(["0 at 50"]);
});

it("rejects who waits at the abort and who comes later, runs nothing, and has left the signal and the clock", async () => {
  const life = new AbortController();
  const gone = new Error("unmounted");
  const { clock, runs, ask } = make({ signal: life.signal });
  const calls = [ask(1), ask(2)];
  expect(getEventListeners(life.signal, "abort")).toHaveLength(1);
  const checked = calls.map((call) => expect(call).rejects.toBe(gone));
  life.abort(gone);
  await Promise.all([...checked, expect(ask(3)).rejects.toBe(gone)]);
  expect([runs, clock.timers, getEventListeners(life.signal, "abort").length]).toEqual([[], 0, 0]);
});

it("has no listener on its signal while nobody waits", async () => {
  const life = new AbortController();
  const { clock, ask } = make({ signal: life.signal });
  const call = ask(1);
  await clock.advance(50);
  await call;
  expect(getEventListeners(life.signal, "abort")).toHaveLength(0);
});

it("keeps this", async () => {
  const clock = new VirtualClock();
  const form = {
    name: "form",
    save: debounceAsync(
      function (this: { readonly name: string }, text: string) {
        return `${this.name}: ${text}`;
      },
      50,
      { clock, leading: true },
    ),
  };
  expect(await form.save("hello")).toBe("form: hello");
});

it("throttles with a result for each call", async () => {
  const clock = new VirtualClock();
  const show = throttleAsync((value: number) => `${value} at ${clock.now()}`, 100, { clock });
  const calls = [show(1), show(2), show(3)];
  expect(await outcomes(calls)).toEqual(["1 at 0", "pending", "pending"]);
  await clock.advance(100);
  expect(await outcomes(calls)).toEqual(["1 at 0", "3 at 100", "3 at 100"]);
});

it("throttles by its options, with one listener while a call waits, and rejects that at the abort", async () => {
  const clock = new VirtualClock();
  const life = new AbortController();
  const options = { leading: false, superseded: "reject", signal: life.signal, clock } as const;
  const show = throttleAsync((value: number) => value, 100, options);
  const calls = [show(1), show(2)];
  expect(await outcomes(calls)).toEqual(["Superseded", "pending"]);
  expect(getEventListeners(life.signal, "abort")).toHaveLength(1);
  await clock.advance(100);
  expect(await calls[1]).toBe(2);
  const last = expect(show(3)).rejects.toBe("left");
  life.abort("left");
  await last;
  expect([clock.timers, getEventListeners(life.signal, "abort").length]).toEqual([0, 0]);
});

it("C134: with latest, delivers no result of an older run after that of a newer one, and aborts the older run", async () => {
  const clock = new VirtualClock();
  const shown: string[] = [];
  const aborted: string[] = [];
  const answer = latest(({ signal }, text: string): Promise<string> => {
    signal.addEventListener("abort", () => aborted.push(`${text} at ${clock.now()}`));
    return new Promise((resolve) => {
      clock.setTimer(text === "A" ? 300 : 20, { onTimer: () => resolve(text) });
    });
  });
  const search = debounceAsync(answer, 50, { clock, leading: true });
  const show = (text: string): unknown =>
    search(text).then(
      (found) => shown.push(found),
      () => {},
    );
  show("A");
  await clock.advance(60);
  show("B");
  await clock.runToIdle();
  expect([shown, aborted]).toEqual([["B"], ["A at 60"]]);
});

it("refuses bad options", () => {
  expect(() => debounceAsync(() => 1, -1)).toThrow(RangeError);
  expect(() => throttleAsync(() => 1, -1)).toThrow(RangeError);
  expect(() => debounceAsync(5 as never, 1)).toThrow("fn must be a function, got number");
  expect(() => debounceAsync(() => 1, 50, { superseded: "drop" as "join" })).toThrow(RangeError);
  expect(() => debounceAsync(() => 1, 50, { signal: {} as AbortSignal })).toThrow(TypeError);
});

it("settles every call once, whatever the plan of calls, pauses, flushes and cancels", () => {
  const step = fc.oneof(
    { weight: 4, arbitrary: fc.constantFrom("call" as const, "fail" as const) },
    { weight: 3, arbitrary: fc.integer({ min: 1, max: 80 }) },
    { weight: 1, arbitrary: fc.constantFrom("flush" as const, "cancel" as const) },
  );
  const options = fc.record({
    leading: fc.boolean(),
    trailing: fc.boolean(),
    superseded: fc.constantFrom("join" as const, "reject" as const),
  });
  const plans = fc.asyncProperty(options, fc.array(step, { maxLength: 30 }), async (how, plan) => {
    const { clock, runs, ask } = make(how);
    const calls: Promise<unknown>[] = [];
    for (const [id, act] of plan.entries()) {
      if (typeof act === "number") await clock.advance(act);
      else if (act === "cancel") ask.cancel();
      else if (act === "flush") ask.flush().catch(() => {});
      else calls.push(ask(act === "fail" ? -id - 1 : id + 1).catch((error: Error) => error.name));
    }
    await clock.runToIdle();
    const settled = await outcomes(calls);
    expect(settled).not.toContain("pending");
    expect(settled.filter((word) => String(word).startsWith("answer")).length).toBeGreaterThanOrEqual(
      runs.filter((run) => !run.includes("(-")).length,
    );
    expect([ask.pending(), clock.timers]).toEqual([false, 0]);
  });
  return fc.assert(plans, { numRuns: 300 });
});
