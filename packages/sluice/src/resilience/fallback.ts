/**
 * Answers with something else when a call fails: a default, an older value, another source. It belongs outermost, since
 * what is inside has to hear of the failure; the other answer has no retry, limit or breaker but its own.
 */
import { checkFunction, checkWait } from "../internal/check.ts";
import { type NameOptions, register } from "../internal/names.ts";
import { whenSettled } from "../internal/when-settled.ts";
import type { Policy, RunContext, Task, WaitOptions } from "../policy.ts";

export interface FallbackOptions extends NameOptions {
  /**
   * Whether to fall back after this error. Not asked after the caller's abort, which nothing falls back from. If it
   * throws, the run rejects with what it threw. @default () => true
   */
  readonly when?: ((error: unknown) => boolean) | undefined;
  /** Whether to fall back after this result, likewise. @default () => false */
  readonly whenResult?: ((result: unknown) => boolean) | undefined;
}

/** `reason` is the error, or the result, that is not to be the answer. */
export type FallbackFunction<F> = (reason: unknown, context: RunContext) => F | PromiseLike<F>;

export type FallbackStats = Readonly<{
  /** So far: runs, those that fell back, and those of them whose fallback failed too. */
  calls: number;
  fallbacks: number;
  failed: number;
}>;

/** A policy that answers with `value`, or what it returns if it is a function, in place of an error. */
export function fallback<F>(value: F | FallbackFunction<F>, options: FallbackOptions = {}): Fallback<F> {
  return new Fallback(value, options);
}

export class Fallback<F> implements Policy {
  readonly name: string | undefined;
  readonly #value: F | FallbackFunction<F>;
  readonly #when: (error: unknown) => boolean;
  readonly #whenResult: ((result: unknown) => boolean) | undefined;
  readonly #counts = { calls: 0, fallbacks: 0, failed: 0 };

  constructor(value: F | FallbackFunction<F>, options: FallbackOptions = {}) {
    this.#value = value;
    this.#when = checkFunction("when", options.when ?? always);
    this.#whenResult = options.whenResult;
    if (this.#whenResult !== undefined) checkFunction("whenResult", this.#whenResult);
    this.name = options.name;
    register("fallback", options, this);
  }

  stats(): FallbackStats {
    return { ...this.#counts };
  }

  /**
   * Calls `fn` at once. If the fallback itself throws an error that has no `cause`, it gets the one that it was called
   * for. Where any `Policy` will do, the second form applies: the result has to be of a type that admits the fallback.
   */
  run<T>(fn: Task<T>, options?: WaitOptions): Promise<T | F>;
  run<T>(fn: Task<T>, options?: WaitOptions): Promise<T>;
  run<T>(fn: Task<T>, options: WaitOptions = {}): Promise<T | F> {
    try {
      checkWait(options);
      const context: RunContext = { signal: options.signal };
      const fail = (error: unknown): Promise<F> => this.#afterError(error, context);
      this.#counts.calls += 1;
      let result: T | PromiseLike<T>;
      try {
        result = fn(context);
      } catch (error) {
        return fail(error);
      }
      return whenSettled<T, T | F>(result, (value) => this.#afterResult(value, context), fail);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  #afterResult<T>(value: T, context: RunContext): T | Promise<F> {
    if (this.#whenResult === undefined || context.signal?.aborted === true || !this.#whenResult(value)) return value;
    return this.#fallBack(value, context);
  }

  async #afterError(error: unknown, context: RunContext): Promise<F> {
    if (context.signal?.aborted === true || !this.#when(error)) throw error;
    return await this.#fallBack(error, context);
  }

  async #fallBack(reason: unknown, context: RunContext): Promise<F> {
    this.#counts.fallbacks += 1;
    try {
      return await (isFunction(this.#value) ? this.#value(reason, context) : this.#value);
    } catch (error) {
      this.#counts.failed += 1;
      if (error instanceof Error && error !== reason && error.cause === undefined) addCause(error, reason);
      throw error;
    }
  }
}

function always(): boolean {
  return true;
}

function isFunction<F>(value: F | FallbackFunction<F>): value is FallbackFunction<F> {
  return typeof value === "function";
}

/** As an `Error` has it that was made with one. Does nothing to one that is frozen. */
function addCause(error: Error, cause: unknown): void {
  Reflect.defineProperty(error, "cause", { value: cause, writable: true, configurable: true });
}
