/**
 * The engine of `mapLimit` and its kin: at most `concurrency` calls of one function over the items of a source. A lane
 * is a place for a call, with one pair of callbacks for all the calls it will see: an async frame or a promise for each
 * item would take several times as long. A call that answers at once takes neither lane nor promise.
 *
 * One instance is kept for good: a full garbage collection forgets the layout of a class of which none is left, and with
 * it the code that was optimized for it, so that the next map would begin slowly.
 */
import { watch, type Watchers, type Watching } from "../internal/abort.ts";
import { checkFunction, checkInteger, checkSignal } from "../internal/check.ts";
import { keepModel } from "../internal/model.ts";
import { notice } from "../internal/probe.ts";
import { isThenable, whenSettled } from "../internal/when-settled.ts";
import type { RunContext } from "../policy.ts";
import { closeSource, openSource, type Source } from "./lanes-source.ts";

export interface MapContext extends RunContext {
  /** Aborts as soon as no result is wanted any more: at the first error, at the caller's abort, on an early end. */
  readonly signal: AbortSignal;
  /** Of the item, counted from 0 in the order of the source. */
  readonly index: number;
}

export type MapFunction<T, R> = (item: T, context: MapContext) => R | PromiseLike<R>;

export interface MapOptions {
  /** Ends all: the result rejects with `signal.reason` at once, and the calls that run have their signal aborted. */
  readonly signal?: AbortSignal | undefined;
  /**
   * Told of what fails after the result is known: a call that was still running, other than by the reason it was
   * aborted with, or a source that fails to close. What it throws is uncaught. @default ignored
   */
  readonly onLateError?: ((error: unknown) => void) | undefined;
}

/** What becomes of the results: `P` is the place that is kept for one, `H` where they are held. One for all runs. */
export interface Harvest<R, P, H> {
  /** The place for the result of an item that has been read: its index, unless said otherwise. */
  reserve?(held: H): P;
  keep(held: H, place: P, value: R): void;
  /** Keeps the error of an item, which then doesn't end all. */
  forgive?(held: H, place: P, reason: unknown): void;
  /** When the results of all items are in, `count` of them. May be called again, to no effect. */
  finish(held: H, count: number): void;
  /** When there will be no more: once, and `finish` never. */
  fail(held: H, reason: unknown): void;
}

/** `P` is the place that is kept for a result, `H` where results are held. */
export class Lanes<T, R, P, H> implements Watching {
  // I1  #running calls run, #concurrency at most
  // I2  the source is asked for one item at a time, and only when that item can be started at once
  // I3  once over, no call starts, the source has been told if it had not ended, and no signal is watched
  watchers: Watchers | undefined = undefined;
  older: Watching | undefined = undefined;
  newer: Watching | undefined = undefined;
  /** Further results that can be kept. `pump` after it has grown. */
  room: number = Infinity;
  /** The latest of the source, if that promises them. */
  answer: unknown = undefined;
  readonly #source: Source<T>;
  readonly #concurrency: number;
  readonly #fn: MapFunction<T, R>;
  readonly #onLateError: ((error: unknown) => void) | undefined;
  readonly #harvest: Harvest<R, P, H>;
  readonly #held: H;
  readonly #controller = new AbortController();
  readonly #signal = this.#controller.signal;
  readonly #idle: Lane<R, P>[] = [];
  #index = 0;
  #running = 0;
  #isAsking = false;
  #hasMore = true;
  #isOver = false;

  constructor(
    items: Iterable<T> | AsyncIterable<T>,
    concurrency: number,
    fn: MapFunction<T, R>,
    { signal, onLateError }: MapOptions,
    harvest: Harvest<R, P, H>,
    held: H,
  ) {
    this.#concurrency = checkInteger("concurrency", concurrency, { min: 1 });
    checkFunction("fn", fn);
    if (onLateError !== undefined) checkFunction("onLateError", onLateError);
    checkSignal(signal);
    this.#source = openSource(items);
    this.#fn = fn;
    this.#onLateError = onLateError;
    this.#harvest = harvest;
    this.#held = held;
  }

  /** Throws what the signal throws. */
  start(signal: AbortSignal | undefined): void {
    if (signal?.aborted === true) return this.onAbort(signal.reason);
    if (signal !== undefined) watch(this, signal);
    this.pump();
  }

  /** Starts what may start. */
  pump(): void {
    while (this.#hasMore && !this.#isAsking && this.#running < this.#concurrency && this.room > 0) this.#ask();
    if (this.#hasMore || this.#running > 0 || this.#isOver) return;
    this.watchers?.leave(this);
    this.#harvest.finish(this.#held, this.#index);
  }

  /** Ends all by an error. A later one is told, unless it is an answer to our own abort, which is no news. */
  onAbort(reason: unknown): void {
    const tell = this.#onLateError;
    if (!this.#isOver) this.end(reason)?.catch((error: unknown) => this.onAbort(error));
    else if (reason !== this.#signal.reason) {
      if (tell === undefined) notice?.("failed", { kind: "map-limit" }, reason);
      else queueMicrotask(() => tell(reason));
    }
  }

  /** Ends all, if it has not ended. What comes back resolves when the source has closed. */
  end(reason: unknown): Promise<void> | undefined {
    if (this.#isOver) return undefined;
    const closed = this.#hasMore ? closeSource(this.#source, this.#isAsking) : undefined;
    this.#hasMore = false;
    this.#isOver = true;
    this.watchers?.leave(this);
    this.#harvest.fail(this.#held, reason);
    this.#controller.abort(reason);
    return closed;
  }

  #ask(): void {
    this.#isAsking = true;
    try {
      const { isAsync, iterator } = this.#source;
      const answer = iterator.next();
      if (!isAsync) return this.#take(answer as IteratorResult<T>);
      const take = (result: IteratorResult<T>): void => {
        this.#take(result);
        this.pump();
      };
      this.answer = answer;
      Promise.resolve(answer)
        .then(take)
        .catch((error: unknown) => this.#lostSource(error)); // also an answer that is none
    } catch (error) {
      this.#lostSource(error);
    }
  }

  #take({ done, value }: IteratorResult<T>): void {
    this.#isAsking = false;
    if (done === true) this.#hasMore = false;
    else if (!this.#isOver) this.#call(value);
  }

  /** It has ended itself by that, and needs no closing. */
  #lostSource(error: unknown): void {
    this.#isAsking = this.#hasMore = false;
    this.onAbort(error);
  }

  #call(item: T): void {
    const index = this.#index;
    const place = this.#harvest.reserve?.(this.#held) ?? (index as P);
    this.#index = index + 1;
    this.#running += 1;
    try {
      const fn = this.#fn;
      const result = fn(item, { signal: this.#signal, index });
      if (isThenable(result)) {
        const lane = this.#idle.pop() ?? this.#openLane();
        lane.place = place;
        return void whenSettled(result, lane.onValue, lane.onError);
      }
      this.#keep(place, result);
    } catch (error) {
      this.#lose(place, error);
    }
  }

  #openLane(): Lane<R, P> {
    const lane: Lane<R, P> = {
      place: undefined as P,
      onValue: (value) => this.#settle(lane, true, value),
      onError: (reason) => this.#settle(lane, false, reason),
    };
    return lane;
  }

  #settle(lane: Lane<R, P>, isFulfilled: boolean, outcome: unknown): void {
    this.#idle.push(lane);
    if (isFulfilled) this.#keep(lane.place, outcome as R);
    else this.#lose(lane.place, outcome);
    this.pump();
  }

  #keep(place: P, value: R): void {
    this.#running -= 1;
    if (!this.#isOver) this.#harvest.keep(this.#held, place, value);
  }

  #lose(place: P, reason: unknown): void {
    const harvest = this.#harvest;
    this.#running -= 1;
    if (this.#isOver || harvest.forgive === undefined) this.onAbort(reason);
    else harvest.forgive(this.#held, place, reason);
  }
}

interface Lane<R, P> {
  place: P;
  readonly onValue: (value: R) => void;
  readonly onError: (reason: unknown) => void;
}

keepModel(new Lanes([], 1, Object, {}, {} as never, undefined));
