/** What the cases of the abort suite are written with: calls that are watched, and states that are compared. */
import type { WaitOptions } from "../policy.ts";
import type { AbortScene } from "./abort-suite.ts";
import { CountingController } from "./counting-signal.ts";
import { turn } from "./turn.ts";
import type { VirtualClock } from "./virtual-clock.ts";

export interface AbortStage {
  readonly scene: AbortScene;
  readonly clock: VirtualClock;
  /** What `state()` and the clock say when a call could succeed at once. */
  readonly satisfied: string;
}

/** More than Node's threshold of listeners by far; with one each, adding them alone takes quadratic time. */
export const MANY = 1_000;

/** `MANY` calls on one signal that settle by `end` must have shared a listener and leave nothing. */
export async function crowd(
  { scene, clock }: AbortStage,
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

export async function refuses({ scene, clock }: AbortStage, bad: Readonly<Record<string, unknown>>): Promise<void> {
  const before = seen(scene, clock);
  const result = start(scene, bad);
  await turn();
  if (result.status !== "rejected") throw new Error(`${JSON.stringify(bad)} is ${result.status}, expected rejected`);
  equal(seen(scene, clock), before, "state");
}

export function start(scene: AbortScene, options: WaitOptions): Started {
  try {
    return new Started(scene.call(options));
  } catch (error) {
    throw new Error("throws synchronously", { cause: error });
  }
}

export class Started {
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
export function seen(scene: AbortScene, clock: VirtualClock): string {
  return JSON.stringify({ ...scene.state(), timers: clock.timers });
}

export function equal<T extends number | string>(actual: T, expected: T, what: string): void {
  if (actual !== expected) throw new Error(`${what}: expected ${expected}, got ${actual}`);
}

function text(value: unknown): string {
  return value instanceof Error ? `${value.name}: ${value.message}` : (JSON.stringify(value) ?? typeof value);
}
