/**
 * The engine of `mapLimit` and its kin: at most `concurrency` calls of one function over the items of a source. A lane
 * is a place for a call, with one pair of callbacks for all the calls it will see: an async frame or a promise for each
 * item would take several times as long. A call that answers at once takes neither lane nor promise.
 *
 * It is a record and functions, not a class: a full garbage collection forgets the layout of instances of which none is
 * left, and with it the code that was optimized for them, so that each map after it would begin slowly, by half.
 */
import { watch, type Watching } from "../internal/abort.ts";
import { checkInteger, checkSignal } from "../internal/check.ts";
import { notice } from "../internal/probe.ts";
import { whenSettled } from "../internal/when-settled.ts";
import type { RunContext } from "../policy.ts";
import { Source } from "./lanes-source.ts";

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
   * aborted with, or a source that fails to close. What it throws is an unhandled rejection. @default ignored
   */
  readonly onLateError?: ((error: unknown) => void) | undefined;
}

/** What becomes of the results: `P` is the place that is kept for one, `H` where they are held. One for all runs. */
export interface Harvest<R, P, H> {
  /** Whether a further result could be kept. */
  hasRoom(held: H): boolean;
  /** The place for the result of an item that has been read. */
  reserve(held: H, index: number): P;
  keep(held: H, place: P, value: R): void;
  /** An item failed; false if that ends all. */
  forgive(held: H, place: P, reason: unknown): boolean;
  /** Called once: when the results of all items are in, `count` of them, … */
  finish(held: H, count: number): void;
  /** … or else when there will be no more. */
  fail(held: H, reason: unknown): void;
}

export interface Lanes<T, R, P, H> extends Watching, Ending {
  // I1  `running` calls run, `concurrency` at most
  // I2  the source is asked for one item at a time, and only when that item can be started at once
  // I3  once over, no call starts, the source has been told if it had not ended, and no signal is watched
  readonly list: readonly T[] | undefined;
  readonly source: Source<T> | undefined;
  readonly concurrency: number;
  readonly fn: MapFunction<T, R>;
  readonly caller: AbortSignal | undefined;
  readonly onLateError: ((error: unknown) => void) | undefined;
  readonly harvest: Harvest<R, P, H>;
  readonly held: H;
  readonly idle: Lane<R, P>[];
  index: number;
  running: number;
  isAsking: boolean;
  hasMore: boolean;
  isOver: boolean;
}

export function openLanes<T, R, P, H>(
  items: Iterable<T> | AsyncIterable<T>,
  concurrency: number,
  fn: MapFunction<T, R>,
  { signal: caller, onLateError }: MapOptions,
  harvest: Harvest<R, P, H>,
  held: H,
): Lanes<T, R, P, H> {
  checkInteger("concurrency", concurrency, { min: 1 });
  if (typeof fn !== "function") throw new TypeError(`fn must be a function, got ${typeof fn}`);
  checkSignal(caller);
  const list = Array.isArray(items) ? (items as readonly T[]) : undefined;
  const lanes: Lanes<T, R, P, H> = {
    list,
    source: list === undefined ? new Source(items) : undefined,
    concurrency,
    fn,
    caller,
    onLateError,
    controller: undefined,
    harvest,
    held,
    idle: [],
    index: 0,
    running: 0,
    isAsking: false,
    hasMore: true,
    isOver: false,
    hasFailed: false,
    overBy: undefined,
    watchers: undefined,
    older: undefined,
    newer: undefined,
    onAbort: (reason) => stop(lanes, reason),
  };
  return lanes;
}

/** Throws the reason of a signal that has aborted, and what the signal throws. */
export function startLanes<T, R, P, H>(lanes: Lanes<T, R, P, H>): void {
  const { caller } = lanes;
  caller?.throwIfAborted();
  if (caller !== undefined) watch(lanes, caller);
  pump(lanes);
}

/** Starts what may start. To be called when `hasRoom` has become true. */
export function pump<T, R, P, H>(lanes: Lanes<T, R, P, H>): void {
  const { harvest, held, concurrency } = lanes;
  while (lanes.hasMore && !lanes.isAsking && lanes.running < concurrency && harvest.hasRoom(held)) ask(lanes);
  if (lanes.hasMore || lanes.running > 0 || lanes.isOver) return;
  lanes.isOver = true;
  lanes.watchers?.leave(lanes);
  harvest.finish(held, lanes.index);
}

/** Ends all, for one who wants no more. Resolves when the source has closed. */
export async function leaveLanes<T, R, P, H>(lanes: Lanes<T, R, P, H>, reason: unknown): Promise<void> {
  if (!lanes.isOver) await end(lanes, reason);
}

function ask<T, R, P, H>(lanes: Lanes<T, R, P, H>): void {
  const { list, source } = lanes;
  if (list !== undefined) {
    if (lanes.index < list.length) call(lanes, list[lanes.index] as T);
    else lanes.hasMore = false;
    return;
  }
  lanes.isAsking = true;
  try {
    const answer = source?.next();
    if (source?.isAsync === true)
      void whenSettled(
        answer,
        (a) => onAnswer(lanes, a),
        (e) => onSourceError(lanes, e),
      );
    else take(lanes, answer as IteratorResult<T>);
  } catch (error) {
    onSourceError(lanes, error);
  }
}

function onAnswer<T, R, P, H>(lanes: Lanes<T, R, P, H>, answer: unknown): void {
  try {
    take(lanes, answer as IteratorResult<T>);
  } catch (error) {
    onSourceError(lanes, error); // an answer that is none
  }
  pump(lanes);
}

function take<T, R, P, H>(lanes: Lanes<T, R, P, H>, { done, value }: IteratorResult<T>): void {
  lanes.isAsking = false;
  if (done === true) lanes.hasMore = false;
  else if (!lanes.isOver) call(lanes, value);
}

/** It has ended itself by that, and needs no closing. */
function onSourceError<T, R, P, H>(lanes: Lanes<T, R, P, H>, error: unknown): void {
  lanes.isAsking = lanes.hasMore = false;
  stop(lanes, error);
}

function call<T, R, P, H>(lanes: Lanes<T, R, P, H>, item: T): void {
  const { index, harvest, held, fn } = lanes;
  const place = harvest.reserve(held, index);
  lanes.index = index + 1;
  lanes.running += 1;
  let result: R | PromiseLike<R>;
  try {
    result = fn(item, new ItemContext(lanes, index));
    if (isThenable(result)) {
      const lane = lanes.idle.pop() ?? openLane(lanes);
      lane.place = place;
      return void whenSettled(result, lane.onValue, lane.onError);
    }
  } catch (error) {
    lanes.running -= 1;
    return lose(lanes, place, error);
  }
  lanes.running -= 1;
  if (!lanes.isOver) harvest.keep(held, place, result);
}

interface Lane<R, P> {
  place: P;
  readonly onValue: (value: R) => void;
  readonly onError: (reason: unknown) => void;
}

function openLane<T, R, P, H>(lanes: Lanes<T, R, P, H>): Lane<R, P> {
  const lane: Lane<R, P> = {
    place: undefined as P,
    onValue: (value) => onValue(lanes, lane, value),
    onError: (reason) => onError(lanes, lane, reason),
  };
  return lane;
}

function onValue<T, R, P, H>(lanes: Lanes<T, R, P, H>, lane: Lane<R, P>, value: R): void {
  lanes.running -= 1;
  lanes.idle.push(lane);
  if (!lanes.isOver) lanes.harvest.keep(lanes.held, lane.place, value);
  pump(lanes);
}

function onError<T, R, P, H>(lanes: Lanes<T, R, P, H>, lane: Lane<R, P>, reason: unknown): void {
  lanes.running -= 1;
  lanes.idle.push(lane);
  lose(lanes, lane.place, reason);
  pump(lanes);
}

function lose<T, R, P, H>(lanes: Lanes<T, R, P, H>, place: P, reason: unknown): void {
  if (lanes.isOver || !lanes.harvest.forgive(lanes.held, place, reason)) stop(lanes, reason);
}

/** Ends all by an error; a later one is told. */
function stop<T, R, P, H>(lanes: Lanes<T, R, P, H>, reason: unknown): void {
  if (lanes.isOver) tellLate(lanes, reason);
  else end(lanes, reason)?.catch((error: unknown) => tellLate(lanes, error));
}

function end<T, R, P, H>(lanes: Lanes<T, R, P, H>, reason: unknown): Promise<void> | undefined {
  const closed = lanes.hasMore ? lanes.source?.close() : undefined;
  lanes.hasMore = false;
  lanes.isOver = lanes.hasFailed = true;
  lanes.overBy = reason;
  lanes.watchers?.leave(lanes);
  lanes.harvest.fail(lanes.held, reason);
  lanes.controller?.abort(reason);
  return closed;
}

/** An answer to our own abort is no news. */
function tellLate<T, R, P, H>({ onLateError, overBy }: Lanes<T, R, P, H>, error: unknown): void {
  if (error === overBy) return;
  if (onLateError === undefined) notice?.("failed", { kind: "map-limit" }, error);
  else queueMicrotask(() => onLateError(error));
}

interface Ending {
  /** Made when a call first asks for its signal: few do. */
  controller: AbortController | undefined;
  /** Whether it is over by an error, an abort or an early end. */
  hasFailed: boolean;
  overBy: unknown;
}

class ItemContext implements MapContext {
  /** Keeps the layout of contexts while there is no other: see above. */
  static readonly sample = new ItemContext({ controller: undefined, hasFailed: false, overBy: undefined }, -1);
  readonly index: number;
  readonly #ending: Ending;

  constructor(ending: Ending, index: number) {
    this.index = index;
    this.#ending = ending;
  }

  get signal(): AbortSignal {
    const { controller = new AbortController(), hasFailed, overBy } = this.#ending;
    if (hasFailed) controller.abort(overBy); // which does nothing the second time
    this.#ending.controller = controller;
    return controller.signal;
  }
}

export function isThenable(value: unknown): value is PromiseLike<unknown> {
  if (value instanceof Promise) return true;
  const isObject = (typeof value === "object" && value !== null) || typeof value === "function";
  return isObject && typeof (value as { then?: unknown }).then === "function";
}
