/** What a pipeline and its stages are told and tell. */
import type { Clock } from "../clock/clock.ts";
import type { NameOptions } from "../internal/names.ts";

export interface PipelineOptions extends NameOptions {
  /** Ends all at once: whoever reads gets `signal.reason`, and the calls that run have their signal aborted. */
  readonly signal?: AbortSignal | undefined;
  /**
   * Takes what a stage with `onError: "dead-letter"` could not do, beside the data. It is awaited in the worker, so
   * that it holds back as a stage does; if it fails, so does the pipeline.
   */
  readonly onDeadLetter?: ((letter: DeadLetter) => unknown) | undefined;
  /** Told of what fails after the end is known, as by `mapLimit`. @default ignored */
  readonly onLateError?: ((error: unknown) => void) | undefined;
  /** Tells ages. @default systemClock */
  readonly clock?: Clock | undefined;
}

export interface DeadLetter {
  readonly stage: string;
  /** As it came to the stage. */
  readonly item: unknown;
  readonly error: unknown;
}

/** Whether an error ends the pipeline, or the item is set aside and the rest goes on. */
export type ErrorPath = "fail" | "dead-letter";

export interface BufferOptions {
  /** Items that may wait in front of the stage: an integer >= 0; with 0 each is handed over. */
  readonly buffer: number;
}

export interface SerialStageOptions<T> extends BufferOptions {
  /** Items that are worked on at a time: an integer >= 1. @default 1 */
  readonly workers?: 1 | undefined;
  readonly ordered?: boolean | undefined;
  /** What becomes of an item whose call fails; a function decides for each. @default "fail" */
  readonly onError?: ErrorPath | ((error: unknown, item: T) => ErrorPath) | undefined;
}

export interface ParallelStageOptions<T> extends Omit<SerialStageOptions<T>, "workers" | "ordered"> {
  readonly workers: number;
  /** Whether results go on in the order of the items, which a slow one then holds up, or as they are ready. */
  readonly ordered: boolean;
}

/** With several workers the order must be chosen: it is lost or costs, and both surprise who had not thought of it. */
export type StageOptions<T> = SerialStageOptions<T> | ParallelStageOptions<T>;

export type StageStats = Readonly<{
  name: string;
  /** Items that wait in front of it, and how many may. */
  size: number;
  capacity: number;
  /** Age of the oldest of them; 0 if there is none. */
  oldestAgeMs: number;
  workers: number;
  /** Items that are worked on. */
  running: number;
  /** Results for which there is no room further on. */
  blocked: number;
  /** Items begun, and what became of those that have ended. */
  taken: number;
  succeeded: number;
  deadLettered: number;
  failed: number;
  /** Results that one of a later item has overtaken. */
  outOfOrder: number;
  /** It takes the stream as one, and may hold all of it: no bound of the pipeline holds there. */
  whole: boolean;
}>;

export type PipelineStats = Readonly<{
  stages: number;
  wholeStages: number;
  /**
   * Items in all buffers, and the sum of what these may hold. Besides, each stage has up to `workers` + 1 items in hand,
   * that are worked on or wait to go on.
   */
  size: number;
  capacity: number;
  /** Items that are worked on, and how many may be. */
  running: number;
  workers: number;
  /** Age of the oldest item in a buffer; 0 if there is none. */
  oldestAgeMs: number;
  /** Items read from the source, and results read from the end. */
  read: number;
  delivered: number;
  deadLettered: number;
  /** What sets the pace now: the last stage that others wait for, `source`, or `sink` for who reads the results. */
  bottleneck: string;
  closed: boolean;
}>;
