/**
 * The latest call wins: of the runs of a function only the result of the newest counts. For what shows the answer to the
 * last question: a search as one types, a page that is switched, a preview. To ask less often, debounce it.
 */
import { ClearedError, SupersededError } from "../errors.ts";
import { Watcher } from "../internal/abort.ts";
import { checkFunction, checkOneOf, checkSignal } from "../internal/check.ts";
import { dispose } from "../internal/dispose.ts";
import { whenSettled } from "../internal/when-settled.ts";
import { type Caller, rejectAll, type WhenSuperseded } from "./caller.ts";

export interface LatestOptions {
  /**
   * A call that comes while another is run: "abort" aborts that run's signal and begins at once; "wait" begins when it has
   * ended, and takes the place of a call that waits already. @default "abort"
   */
  readonly overlap?: "abort" | "wait" | undefined;
  /** What becomes of a call whose place a newer one takes: it rejects at once, or gets that one's result. @default "reject" */
  readonly superseded?: WhenSuperseded | undefined;
  /** Once it has aborted, all calls reject with its reason, and so does the signal of the run. */
  readonly signal?: AbortSignal | undefined;
}

export interface LatestContext {
  /** Aborts with a `SupersededError` when a newer call takes its place, with a `ClearedError` when it is cancelled. */
  readonly signal: AbortSignal;
}

export interface Latest<This, Args extends unknown[], R> extends Disposable {
  (this: This, ...args: Args): Promise<R>;
  /** Aborts the run; its callers, and those that wait, reject with `ClearedError`. */
  cancel(): void;
  /** Whether a call is run or waits. */
  pending(): boolean;
}

/** `fn`, whose runs a newer call aborts, or waits for. It is called at once if nothing is waited for. */
export function latest<This, Args extends unknown[], R>(
  fn: (this: This, context: LatestContext, ...args: Args) => R | PromiseLike<R>,
  options: LatestOptions = {},
): Latest<This, Args, R> {
  const { overlap = "abort", superseded = "reject", signal } = options;
  checkOneOf("overlap", overlap, ["abort", "wait"]);
  checkOneOf("superseded", superseded, ["join", "reject"]);
  checkFunction("fn", fn);
  checkSignal(signal);
  const runs = new Runs<R>(overlap === "abort", superseded === "join", signal);

  function call(this: This, ...args: Args): Promise<R> {
    return new Promise((resolve, reject) => {
      signal?.throwIfAborted();
      runs.add(new Run<R>({ resolve, reject }, (context) => fn.call(this, context, ...args)));
    });
  }

  const cancel = (): void => runs.end(new ClearedError("latest call"));
  return Object.assign(call, { cancel, pending: () => runs.size > 0, [dispose]: cancel });
}

class Run<R> {
  readonly controller: AbortController = new AbortController();
  readonly start: (context: LatestContext) => R | PromiseLike<R>;
  callers: Caller<R>[];

  constructor(caller: Caller<R>, start: (context: LatestContext) => R | PromiseLike<R>) {
    this.callers = [caller];
    this.start = start;
  }

  /** Into their array: they may be very many, and are handed on with each call. */
  joinAfter(others: Caller<R>[]): void {
    others.push(...this.callers);
    this.callers = others;
  }

  take(): Caller<R>[] {
    const { callers } = this;
    this.callers = [];
    return callers;
  }
}

class Runs<R> extends Watcher {
  // I1  #current runs, #next waits for it to end; who is neither has no callers any more
  // I2  it watches the signal exactly while there is a run
  readonly #aborts: boolean;
  readonly #joins: boolean;
  readonly #signal: AbortSignal | undefined;
  #current: Run<R> | undefined;
  #next: Run<R> | undefined;

  constructor(aborts: boolean, joins: boolean, signal: AbortSignal | undefined) {
    super();
    this.#aborts = aborts;
    this.#joins = joins;
    this.#signal = signal;
  }

  get size(): number {
    return [this.#current, this.#next].filter((run) => run !== undefined).length;
  }

  add(run: Run<R>): void {
    const current = this.#current;
    if (current === undefined) {
      if (this.#signal !== undefined) this.watch(this.#signal);
      this.#begin(run);
    } else if (this.#aborts) {
      this.#current = run; // first: who hears of the abort may call
      this.#supersede(current, run);
      if (this.#current === run) this.#begin(run);
    } else {
      const waiting = this.#next;
      this.#next = run;
      if (waiting !== undefined) this.#supersede(waiting, run);
    }
  }

  end(reason: unknown): void {
    const runs = [this.#current, this.#next];
    this.#current = this.#next = undefined;
    this.unwatch();
    for (const run of runs) {
      rejectAll(run?.take() ?? [], reason);
      run?.controller.abort(reason);
    }
  }

  override onAbort(reason: unknown): void {
    this.end(reason);
  }

  #supersede(old: Run<R>, by: Run<R>): void {
    const error = new SupersededError();
    if (this.#joins) by.joinAfter(old.take());
    else rejectAll(old.take(), error);
    old.controller.abort(error);
  }

  #begin(run: Run<R>): void {
    this.#current = run;
    try {
      void whenSettled(
        run.start({ signal: run.controller.signal }),
        (value) => this.#finish(run, (caller) => caller.resolve(value)),
        (reason) => this.#finish(run, (caller) => caller.reject(reason)),
      );
    } catch (error) {
      this.#finish(run, (caller) => caller.reject(error));
    }
  }

  #finish(run: Run<R>, settle: (caller: Caller<R>) => void): void {
    run.take().forEach(settle);
    if (this.#current !== run) return;
    const next = this.#next;
    this.#current = this.#next = undefined;
    if (next === undefined) this.unwatch();
    else this.#begin(next);
  }
}
