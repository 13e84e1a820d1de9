/**
 * Makes calls fail, take long or answer wrongly, to see that what is around them copes: as policies, so that it happens
 * where a dependency's own failures would, innermost in `compose`. Nothing happens unless it is enabled, which it is
 * not by default, and then to a share of the calls, drawn by a seeded `random` if the same run is wanted again.
 */
import type { Clock } from "../clock/clock.ts";
import { sleep } from "../clock/sleep.ts";
import { systemClock } from "../clock/system.ts";
import { checkFunction, checkMs, checkShare, checkWait } from "../internal/check.ts";
import { type NameOptions, register } from "../internal/names.ts";
import { type Random, systemRandom } from "../internal/random.ts";
import { setStage } from "../internal/stage.ts";
import type { Policy, RunContext, Task, WaitOptions } from "../policy.ts";

export interface ChaosOptions extends NameOptions {
  /** The share of calls that it happens to, from 0 to 1. */
  readonly rate: number;
  /** @default false */
  readonly enabled?: boolean | undefined;
  /** Draws the calls. @default Math.random */
  readonly random?: Random | undefined;
}

export interface ChaosLatencyOptions extends ChaosOptions {
  /** @default systemClock */
  readonly clock?: Clock | undefined;
}

export type ChaosStats = Readonly<{
  enabled: boolean;
  rate: number;
  /** Calls so far, and those of them that it happened to. */
  calls: number;
  injected: number;
}>;

/** Some calls reject with what `makeError` returns, and `fn` isn't called. What it throws is the rejection, too. */
export function chaosFault(makeError: () => unknown, options: ChaosOptions): Chaos {
  return new Chaos(options, () => {
    throw makeError();
  });
}

/** Some calls are kept for `delayMs` before `fn` is called, unless the signal ends them. At least 0; a function is asked for each. */
export function chaosLatency(delayMs: number | (() => number), options: ChaosLatencyOptions): Chaos {
  const { clock = systemClock } = options;
  if (typeof delayMs !== "function") checkMs("delayMs", delayMs);
  return new Chaos(options, async (fn, context) => {
    await sleep(typeof delayMs === "function" ? delayMs() : delayMs, { clock, signal: context.signal });
    return fn(context);
  });
}

/** Some calls settle as what `makeResult` returns does, such as a `Response` with status 500, and `fn` isn't called. */
export function chaosOutcome(makeResult: (context: RunContext) => unknown, options: ChaosOptions): Chaos {
  return new Chaos(options, (_, context) => makeResult(context));
}

/** Before some calls `act` is called and awaited, such as to restart what they depend on; what it throws is the rejection. */
export function chaosBehavior(act: (context: RunContext) => unknown, options: ChaosOptions): Chaos {
  return new Chaos(options, async (fn, context) => {
    await act(context);
    context.signal?.throwIfAborted();
    return fn(context);
  });
}

/** What happens to a call in place of `fn`. */
export type ChaosInjection = (fn: Task<unknown>, context: RunContext) => unknown;

export class Chaos implements Policy {
  readonly name: string | undefined;
  /** To be set at will. What has begun goes on. */
  enabled: boolean;
  readonly #inject: ChaosInjection;
  readonly #random: Random;
  #rate: number;
  #calls = 0;
  #injected = 0;

  static {
    setStage(Chaos, (chaos) => ({ enter: () => chaos.#pass(), leave: () => undefined }));
  }

  constructor(options: ChaosOptions, inject: ChaosInjection) {
    this.#rate = checkShare("rate", options.rate);
    this.enabled = options.enabled ?? false;
    this.#random = checkFunction("random", options.random ?? systemRandom);
    this.#inject = inject;
    this.name = options.name;
    register("chaos", options, this);
  }

  /** The share of calls that it happens to, from 0 to 1. To be set at will. */
  get rate(): number {
    return this.#rate;
  }

  set rate(rate: number) {
    this.#rate = checkShare("rate", rate);
  }

  stats(): ChaosStats {
    return { enabled: this.enabled, rate: this.#rate, calls: this.#calls, injected: this.#injected };
  }

  /** Calls `fn` at once, or lets happen to the call what is to happen. */
  run<T>(fn: Task<T>, options: WaitOptions = {}): Promise<T> {
    try {
      checkWait(options);
      const context = { signal: options.signal };
      this.#calls += 1;
      if (!this.enabled || this.#random() >= this.#rate) return Promise.resolve(fn(context));
      this.#injected += 1;
      return Promise.resolve(this.#inject(fn, context) as T | PromiseLike<T>);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  #pass(): true | undefined {
    if (this.enabled) return undefined;
    this.#calls += 1;
    return true;
  }
}
