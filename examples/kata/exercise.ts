/** What an exercise is, and the stage its checks play on: virtual time, on which `setTimeout` runs too. */
import type { Clock } from "sluice";
import { VirtualClock } from "sluice/testing";

export interface Exercise<T> {
  readonly name: string;
  /** What is to be written. */
  readonly task: string;
  readonly checks: readonly Check<T>[];
  /** To begin with: it is wrong in a way that is often seen. */
  readonly starter: Version<T>;
  readonly solution: T;
  /** Other ways to get it wrong. */
  readonly wrong: readonly Version<T>[];
  /** The same, by a primitive of sluice. */
  readonly adapter: (clock: Clock) => T;
}

export interface Version<T> {
  /** What is wrong with it. */
  readonly title: string;
  readonly made: T;
}

export interface Check<T> {
  /** What holds of every right version. */
  readonly title: string;
  /** Throws if it doesn't hold. What a wrong version may never settle is awaited through `outcome`. */
  readonly run: (made: T, stage: Stage) => Promise<void> | void;
}

export interface Failed {
  readonly title: string;
  readonly error: unknown;
}

/** The checks that fail. */
export async function examine<T>(checks: readonly Check<T>[], make: (clock: Clock) => T): Promise<Failed[]> {
  const failed: Failed[] = [];
  for (const { title, run } of checks) {
    const clock = new VirtualClock();
    const globals = clock.installGlobals();
    try {
      await run(make(clock), new Stage(clock));
    } catch (error) {
      failed.push({ title, error });
    } finally {
      globals.restore();
    }
  }
  return failed;
}

export type Outcome =
  | { readonly value: unknown }
  | { readonly error: unknown }
  /** It threw, and should have returned a promise. */
  | { readonly threw: unknown }
  | "hangs";

export class Stage {
  readonly #clock: VirtualClock;

  constructor(clock: VirtualClock) {
    this.#clock = clock;
  }

  get now(): number {
    return this.#clock.now();
  }

  /** Timers that are set. */
  get timers(): number {
    return this.#clock.timers;
  }

  pass(ms: number): Promise<void> {
    return this.#clock.advance(ms);
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.#clock.setTimer(ms, { onTimer: resolve });
    });
  }

  /** What comes of a call within a minute. */
  async outcome(call: () => Promise<unknown>): Promise<Outcome> {
    let outcome: Outcome = "hangs";
    try {
      call().then(
        (value) => (outcome = { value }),
        (error: unknown) => (outcome = { error }),
      );
    } catch (threw) {
      return { threw };
    }
    await this.pass(60_000);
    return outcome;
  }

  /** Calls `fn` at each of these times from now, with the time. */
  async callAt(times: readonly number[], fn: (at: number) => unknown): Promise<void> {
    let last = 0;
    for (const at of times) {
      await this.pass(at - last);
      fn(at);
      last = at;
    }
    await this.pass(1_000);
  }
}

/** Lets so many reactions of promises run, one after the other, and no time pass. At least 1. */
export async function microtasks(count: number): Promise<void> {
  for (let left = count; left > 1; left -= 1) await Promise.resolve(); // the last is the caller's own await
}

export function equal(actual: unknown, expected: unknown): void {
  const [is, wanted] = [actual, expected].map(show);
  if (is !== wanted) throw new Error(`expected ${wanted}, got ${is}`);
}

/** Holds of the outcome of a call that rejects or throws. */
export function failsWith(outcome: Outcome, error: unknown): void {
  if (outcome === "hangs" || !("error" in outcome) || outcome.error !== error)
    throw new Error(`expected a rejection with ${show(error)}, got ${show(outcome)}`);
}

function show(value: unknown): string {
  return JSON.stringify(value, (_, each: unknown) =>
    each === undefined || each instanceof Error ? String(each) : each,
  );
}
