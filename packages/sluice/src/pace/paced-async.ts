/** The engine of `debounceAsync` and `throttleAsync`: each call gets a promise, and every promise is settled. */
import { ClearedError, SupersededError } from "../errors.ts";
import { Watcher } from "../internal/abort.ts";
import { checkFunction, checkOneOf, checkSignal } from "../internal/check.ts";
import { dispose } from "../internal/dispose.ts";
import { type Caller, rejectAll, type WhenSuperseded } from "./caller.ts";
import type { Paced } from "./paced.ts";

export interface PacedAsyncOptions {
  /**
   * What becomes of a call that a newer one takes along: "join" gives it the result of the run of that one, or, if it
   * came too late for a run and waits for none, of the run before; "reject" rejects with `SupersededError`.
   * @default "join"
   */
  readonly superseded?: WhenSuperseded | undefined;
  /** Once it has aborted, nothing is run: calls that wait reject with its reason at once, and all later ones. */
  readonly signal?: AbortSignal | undefined;
}

export interface PacedAsync<This, Args extends unknown[], R> extends Disposable {
  (this: This, ...args: Args): Promise<R>;
  /** Calls that wait reject with `ClearedError`, and it forgets that there were any. A run that has begun goes on. */
  cancel(): void;
  /** Runs the call that waits now; resolves as that does, with undefined if none waits, or within a run. */
  flush(): Promise<R | undefined>;
  /** Whether a call waits to be run. */
  pending(): boolean;
}

type Run<This, Args extends unknown[]> = (this: This, ...args: Args) => void;

export function pacedAsync<This, Args extends unknown[], R>(
  fn: (this: This, ...args: Args) => R | PromiseLike<R>,
  pace: (run: Run<This, Args>) => Paced<This, Args, void>,
  options: PacedAsyncOptions,
): PacedAsync<This, Args, R> {
  const { superseded = "join", signal } = options;
  checkOneOf("superseded", superseded, ["join", "reject"]);
  checkFunction("fn", fn);
  checkSignal(signal);
  const waiting = new Waiting<R>();
  let lastRun: Promise<R> | undefined;

  const paced = pace(function run(...args) {
    const callers = waiting.take();
    lastRun = start(fn, this, args);
    settle(callers, lastRun);
  });

  function call(this: This, ...args: Args): Promise<R> {
    return new Promise((resolve, reject) => {
      signal?.throwIfAborted();
      if (superseded === "reject") rejectAll(waiting.take(), new SupersededError());
      waiting.add({ resolve, reject }, signal, paced);
      paced.apply(this, args);
      if (paced.pending()) return;
      const dropped = waiting.take();
      if (superseded === "reject" || lastRun === undefined) rejectAll(dropped, new SupersededError());
      else settle(dropped, lastRun);
    });
  }

  const cancel = (): void => {
    paced.cancel();
    rejectAll(waiting.take(), new ClearedError("calls that wait for a run"));
  };

  const flush = async (): Promise<R | undefined> => {
    const before = lastRun;
    paced.flush();
    return lastRun === before ? undefined : lastRun;
  };

  return Object.assign(call, { cancel, flush, pending: () => paced.pending(), [dispose]: cancel });
}

class Waiting<R> extends Watcher {
  // I1  it watches the signal exactly while there are callers
  #callers: Caller<R>[] = [];
  #paced: { cancel(): void } | undefined;

  add(caller: Caller<R>, signal: AbortSignal | undefined, paced: { cancel(): void }): void {
    if (signal !== undefined && this.#callers.length === 0) this.watch(signal);
    this.#paced = paced;
    this.#callers.push(caller);
  }

  take(): Caller<R>[] {
    const callers = this.#callers;
    this.#callers = [];
    this.unwatch();
    return callers;
  }

  override onAbort(reason: unknown): void {
    this.#paced?.cancel();
    rejectAll(this.take(), reason);
  }
}

/** Never throws. */
async function start<This, Args extends unknown[], R>(
  fn: (this: This, ...args: Args) => R | PromiseLike<R>,
  self: This,
  args: Args,
): Promise<R> {
  return await fn.apply(self, args);
}

function settle<R>(callers: readonly Caller<R>[], run: Promise<R>): void {
  void run.then(
    (value) => callers.forEach((caller) => caller.resolve(value)),
    (reason: unknown) => rejectAll(callers, reason),
  );
}
