/** A call that runs: what its function is handed, and what the calls made from within it are known by. */
import { EitherSignal } from "../../internal/either-signal.ts";
import { keepModel } from "../../internal/model.ts";
import type { RunContext, Task } from "../../policy.ts";
import { Request, type Work } from "./request.ts";

export class Run implements RunContext {
  // I1  while it isn't over, it has `weight` slots
  readonly task: Task<unknown>;
  readonly request: Request | undefined;
  readonly weight: number;
  /** It is to enter its context. */
  readonly isWatched: boolean;
  /** Of which limiter it is, and the call from within which it was made, of whichever: once it has been marked. */
  owner: object | undefined = undefined;
  around: Run | undefined = undefined;
  /** Calls from within it that wait for a slot of the same limiter. */
  waitingWithin = 0;
  /** It has no slot any more, though an abandoned one still runs. */
  isOver = false;
  readonly #caller: AbortSignal | undefined;
  readonly #stop: AbortSignal;
  #either: EitherSignal | undefined = undefined;

  constructor(work: Work, caller: AbortSignal | undefined, stop: AbortSignal, weight: number, isWatched = false) {
    this.request = work instanceof Request ? work : undefined;
    this.task = work instanceof Request ? work.task : work;
    this.weight = weight;
    this.isWatched = isWatched;
    this.#caller = caller;
    this.#stop = stop;
  }

  /** Aborts with the caller's and with the limiter's. It is made when it is asked for, since few functions do. */
  get signal(): AbortSignal {
    if (this.#either !== undefined) return this.#either.signal;
    if (this.#caller === undefined && this.request === undefined) return this.#stop;
    if (this.isOver) return this.#caller ?? this.#stop; // nothing may be left on either
    return this.#join().signal;
  }

  throwIfAborted(): void {
    this.#caller?.throwIfAborted();
    this.#stop.throwIfAborted();
  }

  abort(reason: unknown): void {
    (this.#either ?? this.#join()).abort(reason);
  }

  end(): void {
    this.isOver = true;
    this.#either?.release();
  }

  #join(): EitherSignal {
    const signals = this.#caller === undefined ? [this.#stop] : [this.#caller, this.#stop];
    return (this.#either = new EitherSignal(...signals));
  }
}

keepModel(new Run(() => {}, undefined, new AbortController().signal, 1));
