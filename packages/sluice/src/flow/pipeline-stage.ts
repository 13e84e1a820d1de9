/** One stage of a pipeline: a bounded buffer, and workers that take from it. */
import type { Clock } from "../clock/clock.ts";
import { checkFunction, checkInteger, checkOneOf } from "../internal/check.ts";
import { isThenable, whenSettled } from "../internal/when-settled.ts";
import type { RunContext } from "../policy.ts";
import type { MapContext, MapFunction } from "./lanes.ts";
import { mapStream, SET_ASIDE } from "./map-stream.ts";
import type { BufferOptions, DeadLetter, ErrorPath, StageOptions, StageStats } from "./pipeline-options.ts";
import { Queue } from "./queue.ts";

/** The pipeline as a stage sees it. */
export interface Flow {
  readonly clock: Clock;
  /** Aborts when all ends. */
  readonly signal: AbortSignal;
  readonly onDeadLetter: ((letter: DeadLetter) => unknown) | undefined;
  readonly onLateError: ((error: unknown) => void) | undefined;
  fail(error: unknown): void;
}

export type WholeFunction<T, U> = (
  items: AsyncIterable<T>,
  context: RunContext,
) => Iterable<U> | AsyncIterable<U> | PromiseLike<Iterable<U> | AsyncIterable<U>>;

export abstract class Stage {
  readonly name: string;
  readonly queue: Queue<unknown>;
  readonly workers: number = 1;
  readonly isWhole: boolean = false;
  running = 0;
  taken = 0;
  succeeded = 0;
  deadLettered = 0;
  failed = 0;
  outOfOrder = 0;
  /** Results that the next stage, or the reader, has. */
  passedOn = 0;

  constructor(name: string, { buffer }: BufferOptions, clock: Clock) {
    if (typeof name !== "string") throw new TypeError(`the name of a stage must be a string, got ${typeof name}`);
    this.name = name;
    this.queue = new Queue(checkInteger(`buffer of stage ${name}`, buffer, { min: 0 }), { clock });
  }

  /** What comes out of it. */
  abstract open(flow: Flow): AsyncIterableIterator<unknown, undefined>;

  get blocked(): number {
    return this.succeeded - this.passedOn;
  }

  stats(): StageStats {
    const { name, queue, workers, running, blocked, taken, succeeded, deadLettered, failed, outOfOrder } = this;
    return {
      name,
      size: queue.size,
      capacity: queue.capacity,
      oldestAgeMs: queue.oldestAgeMs,
      workers,
      running,
      blocked,
      taken,
      succeeded,
      deadLettered,
      failed,
      outOfOrder,
      whole: this.isWhole,
    };
  }
}

export class ItemStage<T, U> extends Stage {
  override readonly workers: number;
  readonly #fn: MapFunction<T, U>;
  readonly #ordered: boolean;
  readonly #onError: ErrorPath | ((error: unknown, item: T) => ErrorPath);
  #latest = -1;

  constructor(name: string, fn: MapFunction<T, U>, options: StageOptions<T>, clock: Clock, canSetAside: boolean) {
    super(name, options, clock);
    const { workers = 1, ordered, onError = "fail" } = options;
    checkFunction(`fn of stage ${name}`, fn);
    this.workers = checkInteger(`workers of stage ${name}`, workers, { min: 1 });
    if (workers > 1 && typeof ordered !== "boolean")
      throw new TypeError(
        `ordered of stage ${name} must be true or false with ${workers} workers, got ${typeof ordered}`,
      );
    if (typeof onError !== "function") checkOneOf(`onError of stage ${name}`, onError, PATHS);
    if (onError !== "fail" && !canSetAside)
      throw new TypeError(`onError of stage ${name} needs a pipeline with onDeadLetter`);
    this.#fn = fn;
    this.#ordered = ordered ?? true;
    this.#onError = onError;
  }

  override open(flow: Flow): AsyncIterableIterator<unknown, undefined> {
    const { signal, onLateError } = flow;
    const call: MapFunction<unknown, unknown> = (item, context) => this.#call(item as T, context, flow);
    return mapStream(this.queue, this.workers, call, { ordered: this.#ordered, signal, onLateError });
  }

  #call(item: T, context: MapContext, flow: Flow): unknown {
    this.taken += 1;
    this.running += 1;
    try {
      const result = this.#fn(item, context);
      if (!isThenable(result)) return this.#succeed(result, context);
      return whenSettled<unknown, unknown>(
        result,
        (value) => this.#succeed(value, context),
        (error) => this.#fail(error, item, context, flow),
      );
    } catch (error) {
      return this.#fail(error, item, context, flow);
    }
  }

  #succeed(result: unknown, { index }: MapContext): unknown {
    this.running -= 1;
    this.succeeded += 1;
    if (this.#ordered) return result;
    if (index < this.#latest) this.outOfOrder += 1;
    else this.#latest = index;
    return result;
  }

  async #fail(error: unknown, item: T, { signal }: MapContext, flow: Flow): Promise<typeof SET_ASIDE> {
    try {
      if (signal.aborted) throw error;
      const path = typeof this.#onError === "function" ? this.#onError(error, item) : this.#onError;
      if (path === "fail") throw error;
      if (path !== "dead-letter") throw unknownPath(this.name, path, error);
      await flow.onDeadLetter?.({ stage: this.name, item, error });
      this.deadLettered += 1;
      return SET_ASIDE;
    } catch (failure) {
      this.failed += 1;
      if (!signal.aborted) flow.fail(failure); // now, not when somebody reads the result
      throw failure;
    } finally {
      this.running -= 1;
    }
  }
}

export class WholeStage<T, U> extends Stage {
  override readonly isWhole = true;
  readonly #fn: WholeFunction<T, U>;

  constructor(name: string, fn: WholeFunction<T, U>, options: BufferOptions, clock: Clock) {
    super(name, options, clock);
    checkFunction(`fn of stage ${name}`, fn);
    this.#fn = fn;
  }

  override open(flow: Flow): AsyncIterableIterator<unknown, undefined> {
    const { signal, onLateError } = flow;
    return mapStream(this.#results(flow), 1, (result) => result, { signal, onLateError });
  }

  async *#results(flow: Flow): AsyncGenerator {
    const { signal } = flow;
    this.running = 1;
    try {
      const results = await this.#fn(this.#items(), { signal });
      for await (const result of results) {
        this.succeeded += 1;
        yield result;
      }
    } catch (error) {
      this.failed += 1;
      if (!signal.aborted) flow.fail(error);
      throw error;
    } finally {
      this.running = 0;
    }
  }

  async *#items(): AsyncGenerator<T> {
    for await (const item of this.queue) {
      this.taken += 1;
      yield item as T;
    }
  }
}

const PATHS = ["fail", "dead-letter"] as const;

function unknownPath(stage: string, path: unknown, cause: unknown): RangeError {
  return new RangeError(`onError of stage ${stage} must return fail or dead-letter, got ${String(path)}`, { cause });
}
