import { Relay } from "../clock/relay.ts";
import { Watcher } from "../internal/abort.ts";
import { checkFunction, checkInteger, checkSignal } from "../internal/check.ts";
import type { RunContext, WaitOptions } from "../policy.ts";

export interface ConsumeOptions {
  /** Items that are worked on at the same time. An integer >= 1. @default 1 */
  readonly workers?: number | undefined;
  /**
   * Ends the consumption: what is under way gets to its end with an aborted signal, then the promise rejects with the
   * reason. The queue stays open, for others.
   */
  readonly signal?: AbortSignal | undefined;
  /**
   * Ends it quietly when it aborts: nothing more is taken, what was taken is worked on to its end and not disturbed, and
   * then the promise resolves. The queue stays open, for others.
   */
  readonly stop?: AbortSignal | undefined;
  /**
   * Gets what calls throw after the consumption has failed or `signal` has aborted, unless it is the reason of that.
   * @default an unhandled rejection
   */
  readonly onLateError?: ((error: unknown) => void) | undefined;
}

/** `signal` aborts when the consumption ends early: by its own signal, or because a call failed. */
export type Consumer<T> = (item: T, context: RunContext) => unknown;

/** The side of a queue that consumers see. */
export interface Consumed<T> {
  take(options: WaitOptions): Promise<T>;
  fail(error: unknown): void;
}

/** What a queue knows of its consumers. */
export interface ConsumerRegister {
  /** A worker begins, or ends. */
  count(change: 1 | -1): void;
  /** Whether `error` is how a consumer hears of `close`. */
  isEnd(error: unknown): boolean;
}

export async function consume<T>(
  queue: Consumed<T>,
  fn: Consumer<T>,
  options: ConsumeOptions,
  register: ConsumerRegister,
): Promise<void> {
  const { workers = 1, signal, stop, onLateError } = options;
  checkFunction("fn", fn);
  if (onLateError !== undefined) checkFunction("onLateError", onLateError);
  checkInteger("workers", workers, { min: 1 });
  checkSignal(signal);
  checkSignal(stop, "stop");
  signal?.throwIfAborted();
  if (stop?.aborted === true) return;
  const consumption = new Consumption(queue, fn, register, onLateError);
  if (signal !== undefined) consumption.watch(signal);
  const relay = stop && new Relay({ onAbort: () => consumption.stop() }, stop);
  try {
    await Promise.all(Array.from({ length: workers }, () => consumption.work()));
  } finally {
    consumption.unwatch();
    relay?.unwatch();
  }
  consumption.throwIfEndedEarly();
}

const STOPPED: unique symbol = Symbol("stopped");

class Consumption<T> extends Watcher {
  // I1  an item that was taken always reaches #fn
  // I2  nothing is taken once #taking has aborted, which it has if #work has
  readonly #queue: Consumed<T>;
  readonly #fn: Consumer<T>;
  readonly #register: ConsumerRegister;
  readonly #onLateError: ((error: unknown) => void) | undefined;
  readonly #taking = new AbortController();
  readonly #work = new AbortController();
  #early: { readonly reason: unknown } | undefined;

  constructor(
    queue: Consumed<T>,
    fn: Consumer<T>,
    register: ConsumerRegister,
    onLateError: ((error: unknown) => void) | undefined,
  ) {
    super();
    this.#queue = queue;
    this.#fn = fn;
    this.#register = register;
    this.#onLateError = onLateError;
  }

  /** The first reason stays. */
  override onAbort(reason: unknown): void {
    this.#early ??= { reason };
    this.#taking.abort(reason);
    this.#work.abort(reason);
  }

  stop(): void {
    this.#taking.abort(STOPPED);
  }

  throwIfEndedEarly(): void {
    if (this.#early !== undefined) throw this.#early.reason;
  }

  /** Never rejects: the others must have ended too. */
  async work(): Promise<void> {
    const { signal } = this.#taking;
    this.#register.count(1);
    try {
      for (;;) await this.#call(await this.#queue.take({ signal }), this.#work.signal);
    } catch (error) {
      if (error !== STOPPED && !this.#register.isEnd(error)) this.onAbort(error);
    } finally {
      this.#register.count(-1);
    }
  }

  async #call(item: T, signal: AbortSignal): Promise<void> {
    try {
      await this.#fn(item, { signal });
    } catch (error) {
      if (this.#early === undefined) {
        this.onAbort(error);
        this.#queue.fail(error); // or it would only fill, and its producers wait for ever
      } else if (error !== this.#work.signal.reason) this.#tellLate(error);
    }
  }

  #tellLate(late: unknown): void {
    try {
      if (this.#onLateError === undefined) throw late;
      this.#onLateError(late);
    } catch (error) {
      void Promise.reject(error); // seen as unhandled
    }
  }
}
