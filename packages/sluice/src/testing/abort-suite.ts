/**
 * What each function that takes a `signal` promises, as cases for any test runner:
 * `for (const { title, run } of abortCases(subject)) it(title, run);`
 */
import type { WaitOptions } from "../policy.ts";
import { CountingController } from "./counting-signal.ts";
import { turn } from "./turn.ts";
import { VirtualClock } from "./virtual-clock.ts";

export interface AbortSubject {
  /** Opens the titles: `Semaphore.acquire`. */
  readonly name: string;
  /** A scene for one case. Whatever runs `timeoutMs`, or is waited for, is on `clock`. */
  open(clock: VirtualClock): AbortScene;
  /** What the subject doesn't do, and why. Cases that need it are replaced by what holds instead. */
  readonly lacks?: AbortLacks | undefined;
}

export interface AbortLacks {
  /** It takes no `timeoutMs`, or has no use for it: one that is given makes no difference. */
  readonly timeoutMs?: string | undefined;
  /** It calls `fn` at once, and hands the signal on: an abort meanwhile is for `fn` to act on. */
  readonly waiting?: string | undefined;
}

export interface AbortScene {
  /** Calls the subject. The call doesn't settle before `satisfy`. */
  call(options: WaitOptions): Promise<unknown>;
  /**
   * Lets the oldest call that waits succeed; without one, the next call needn't wait, where the subject remembers. If
   * that takes time to pass, more than 250 ms and less than 10 s.
   */
  satisfy(): unknown;
  /** What every call that got nothing must leave as it was: places in line, permits, items. */
  state(): Readonly<Record<string, number>>;
  /** Undoes what a call that succeeded has taken. */
  giveBack?(value: unknown): void;
}

export interface AbortCase {
  readonly title: string;
  readonly run: () => Promise<void>;
}

interface Stage {
  readonly scene: AbortScene;
  readonly clock: VirtualClock;
  /** What `state()` and the clock say when a call could succeed at once. */
  readonly satisfied: string;
}

interface Template {
  readonly title: string;
  readonly needs?: keyof AbortLacks;
  readonly insteadOf?: keyof AbortLacks;
  readonly run: (stage: Stage) => Promise<void>;
}

/** More than Node's threshold of listeners by far; with one each, adding them alone takes quadratic time. */
const MANY = 1_000;
const LIMIT_MS = 250;
const LONG_MS = 10_000;

export function abortCases(subject: AbortSubject): AbortCase[] {
  const { name, lacks = {} } = subject;
  const wanted = templates.filter(({ needs, insteadOf }) => {
    const missing = needs !== undefined && lacks[needs] !== undefined;
    return !missing && (insteadOf === undefined || lacks[insteadOf] !== undefined);
  });
  return wanted.map(({ title, insteadOf, run }) => {
    const why = insteadOf === undefined ? "" : ` (${lacks[insteadOf]})`;
    return { title: `${name} ${title}${why}`, run: () => stage(subject).then(run) };
  });
}

async function stage(subject: AbortSubject): Promise<Stage> {
  const [clock, other] = [new VirtualClock(), new VirtualClock()];
  const model = subject.open(other);
  await model.satisfy();
  await turn();
  return { scene: subject.open(clock), clock, satisfied: seen(model, other) };
}

const templates: readonly Template[] = [
  {
    title: "acquires nothing with a signal that is aborted already, and rejects with its reason",
    async run({ scene, clock, satisfied }) {
      for (const state of [seen(scene, clock), satisfied]) {
        if (state === satisfied) await scene.satisfy();
        for (const reason of reasons()) {
          const call = new CountingController();
          call.abort(reason);
          const result = start(scene, { signal: call.signal });
          await turn();
          result.rejectedWith(call.signal.reason);
          equal(call.listeners, 0, "listeners");
          equal(seen(scene, clock), state, "state");
        }
      }
    },
  },
  {
    title: "rejects with the reason untouched when the signal aborts mid-wait, and frees the place at once",
    needs: "waiting",
    async run({ scene, clock }) {
      const before = seen(scene, clock);
      for (const reason of reasons()) {
        const call = new CountingController();
        const result = start(scene, { signal: call.signal });
        await turn();
        result.waits();
        call.abort(reason);
        equal(seen(scene, clock), before, "state in the turn of the abort");
        await turn();
        result.rejectedWith(call.signal.reason);
        equal(call.listeners, 0, "listeners");
      }
    },
  },
  {
    title: "leaves a call that is under way to the signal it hands on",
    insteadOf: "waiting",
    async run({ scene }) {
      const call = new CountingController();
      const result = start(scene, { signal: call.signal });
      await turn();
      call.abort(new Error("mid-way"));
      await turn();
      result.waits();
      await scene.satisfy();
      await turn();
      result.succeeded();
      equal(call.listeners, 0, "listeners");
    },
  },
  {
    title: "changes nothing by an abort after the call has settled",
    async run({ scene, clock }) {
      const call = new CountingController();
      const result = start(scene, { signal: call.signal, timeoutMs: LONG_MS });
      await turn();
      await scene.satisfy();
      await turn();
      result.succeeded();
      equal([call.listeners, clock.timers].join(), "0,0", "listeners and timers");
      const after = seen(scene, clock);
      call.abort(new Error("late"));
      await turn();
      equal(seen(scene, clock), after, "state");
    },
  },
  {
    title: "loses nothing when the signal aborts in the turn of the grant",
    async run({ scene, clock, satisfied }) {
      const call = new CountingController();
      const result = start(scene, { signal: call.signal });
      await turn();
      const granted = scene.satisfy();
      call.abort(new Error("same turn"));
      await granted;
      await turn();
      if (result.status === "fulfilled") scene.giveBack?.(result.value);
      else result.rejectedWith(call.signal.reason);
      await turn();
      equal(seen(scene, clock), satisfied, "state");
      equal(call.listeners, 0, "listeners");
    },
  },
  {
    title: "has one listener for a thousand calls on one signal, and none after an abort",
    needs: "waiting",
    run: (the) => crowd(the, {}, (call) => call.abort(new Error("all"))),
  },
  {
    title: "has one listener for a thousand calls on one signal, and none after success",
    async run(the) {
      await crowd(the, {}, async (_, isOver) => {
        for (let tries = 0; tries < MANY && !isOver(); tries += 1) {
          await the.scene.satisfy();
          await turn();
        }
      });
    },
  },
  {
    title: "has one listener for a thousand calls on one signal, and none after their timeout",
    needs: "timeoutMs",
    run: (the) => crowd(the, { timeoutMs: LIMIT_MS }, () => the.clock.advance(LIMIT_MS)),
  },
  {
    title: "tries once when timeoutMs is 0",
    needs: "timeoutMs",
    async run({ scene, clock }) {
      const before = seen(scene, clock);
      const refused = start(scene, { timeoutMs: 0 });
      equal(seen(scene, clock), before, "state in the turn of the call");
      await turn();
      refused.timedOut(0);
      await scene.satisfy();
      const granted = start(scene, { timeoutMs: 0 });
      await turn();
      granted.succeeded();
    },
  },
  {
    title: "lets a call wait on though timeoutMs has passed",
    insteadOf: "timeoutMs",
    async run({ scene, clock }) {
      const results = [start(scene, { timeoutMs: 0 }), start(scene, { timeoutMs: 1 })];
      await clock.advance(1);
      for (const result of results) result.waits();
      for (const result of results) {
        if (result.status === "waiting") await scene.satisfy();
        await turn();
        result.succeeded();
      }
    },
  },
  {
    title: "ends the wait with a TimeoutError after timeoutMs, and leaves no timer",
    needs: "timeoutMs",
    async run({ scene, clock }) {
      const before = seen(scene, clock);
      const result = start(scene, { timeoutMs: LIMIT_MS });
      await clock.advance(LIMIT_MS - 1);
      result.waits();
      await clock.advance(1);
      result.timedOut(LIMIT_MS);
      equal(seen(scene, clock), before, "state");
    },
  },
  {
    title: "rejects with the abort's reason when abort and timeout fall in one turn, whichever timer was set first",
    needs: "timeoutMs",
    async run({ scene, clock }) {
      const [early, late] = [new CountingController(), new CountingController()];
      clock.setTimer(LIMIT_MS, { onTimer: () => early.abort(new Error("early")) });
      const results = [early, late].map(({ signal }) => start(scene, { signal, timeoutMs: LIMIT_MS }));
      clock.setTimer(LIMIT_MS, { onTimer: () => late.abort(new Error("late")) });
      await clock.advance(LIMIT_MS);
      results[0]?.rejectedWith(early.signal.reason);
      results[1]?.rejectedWith(late.signal.reason);
      equal([early.listeners, late.listeners, clock.timers].join(), "0,0,0", "listeners and timers");
    },
  },
  {
    title: "rejects for a bad signal and takes nothing, never throws",
    async run(the) {
      for (const signal of [{}, "signal", 1, null]) await refuses(the, { signal });
    },
  },
  {
    title: "rejects for a bad timeoutMs and takes nothing, never throws",
    needs: "timeoutMs",
    async run(the) {
      for (const timeoutMs of [-1, Number.NaN, "5", null]) await refuses(the, { timeoutMs });
    },
  },
  {
    title: "leaves nobody in line when the signal itself throws",
    needs: "waiting",
    async run({ scene, clock }) {
      const before = seen(scene, clock);
      const failure = new Error("a signal of somebody else's");
      const { signal } = new AbortController();
      signal.addEventListener = () => {
        throw failure;
      };
      const result = start(scene, { signal });
      await turn();
      result.rejectedWith(failure);
      equal(seen(scene, clock), before, "state");
    },
  },
];

/** `MANY` calls on one signal that settle by `end` must have shared a listener and leave nothing. */
async function crowd(
  { scene, clock }: Stage,
  options: WaitOptions,
  end: (call: CountingController, isOver: () => boolean) => unknown,
): Promise<void> {
  const timers = clock.timers;
  const call = new CountingController();
  const results = Array.from({ length: MANY }, () => start(scene, { ...options, signal: call.signal }));
  await turn();
  await end(call, () => results.every(({ status }) => status !== "waiting"));
  await turn();
  equal(results.filter(({ status }) => status === "waiting").length, 0, "calls that still wait");
  if (call.most > 1) throw new Error(`${call.most} listeners for ${MANY} calls`);
  equal([call.listeners, clock.timers].join(), `0,${timers}`, "listeners and timers");
}

async function refuses({ scene, clock }: Stage, bad: Readonly<Record<string, unknown>>): Promise<void> {
  const before = seen(scene, clock);
  const result = start(scene, bad);
  await turn();
  if (result.status !== "rejected") throw new Error(`${JSON.stringify(bad)} is ${result.status}, expected rejected`);
  equal(seen(scene, clock), before, "state");
}

/** As bugs would treat them differently: an error, no error, nothing at all, and the platform's own. */
function reasons(): unknown[] {
  return [new Error("changed my mind"), "a string", null, undefined];
}

function start(scene: AbortScene, options: WaitOptions): Started {
  try {
    return new Started(scene.call(options));
  } catch (error) {
    throw new Error("throws synchronously", { cause: error });
  }
}

class Started {
  status: "waiting" | "fulfilled" | "rejected" = "waiting";
  value: unknown;

  constructor(promise: Promise<unknown>) {
    const settle =
      (status: "fulfilled" | "rejected") =>
      (value: unknown): void => {
        this.status = status;
        this.value = value;
      };
    promise.then(settle("fulfilled"), settle("rejected"));
  }

  waits(): void {
    if (this.status !== "waiting") throw this.#surprise("still to wait");
  }

  succeeded(): void {
    if (this.status !== "fulfilled") throw this.#surprise("success");
  }

  rejectedWith(reason: unknown): void {
    if (this.status !== "rejected" || !Object.is(this.value, reason))
      throw this.#surprise(`rejection by ${text(reason)}`);
  }

  timedOut(timeoutMs: number): void {
    const { code, timeoutMs: limit } = (this.value ?? {}) as { code?: unknown; timeoutMs?: unknown };
    const right = this.status === "rejected" && code === "TIMEOUT" && limit === timeoutMs;
    if (!right) throw this.#surprise(`TimeoutError after ${timeoutMs} ms`);
  }

  #surprise(expected: string): Error {
    return new Error(`expected ${expected}, but it is ${this.status}: ${text(this.value)}`, { cause: this.value });
  }
}

/** Timers count: one left behind by a call that got nothing is a leak too. */
function seen(scene: AbortScene, clock: VirtualClock): string {
  return JSON.stringify({ ...scene.state(), timers: clock.timers });
}

function equal<T extends number | string>(actual: T, expected: T, what: string): void {
  if (actual !== expected) throw new Error(`${what}: expected ${expected}, got ${actual}`);
}

function text(value: unknown): string {
  return value instanceof Error ? `${value.name}: ${value.message}` : (JSON.stringify(value) ?? typeof value);
}
