/**
 * Items go through stages, each with a bounded buffer in front and workers of its own, all at the same time: the
 * slowest stage sets the pace, and holds back those before it. `stats()` names it; widen that one only.
 */
import type { MapFunction } from "./lanes.ts";
import { forEachLimit } from "./for-each-limit.ts";
import { PipelineFlow } from "./pipeline-flow.ts";
import type { BufferOptions, PipelineOptions, PipelineStats, StageOptions, StageStats } from "./pipeline-options.ts";
import { ItemStage, type WholeFunction, WholeStage } from "./pipeline-stage.ts";

/** A pipeline that reads from a list, an iterable or an async iterable, as far as it has room. */
export function pipeline<T>(source: Iterable<T> | AsyncIterable<T>, options: PipelineOptions = {}): Pipeline<T> {
  return new Pipeline<T>(new PipelineFlow(source, options));
}

/**
 * Made of stages, then read once: by `for await` or by `forEach`. Nothing runs before. The first error, of a stage, the
 * source, or the reader, and an abort end all at once: calls that run have their signal aborted, the source is closed,
 * and results that were not read are dropped.
 */
export class Pipeline<T> implements AsyncIterable<T> {
  // I1  its results are read, or go on to the next stage, once
  readonly #flow: PipelineFlow;
  #isTaken = false;

  constructor(flow: PipelineFlow) {
    this.#flow = flow;
  }

  get name(): string | undefined {
    return this.#flow.name;
  }

  stats(): PipelineStats {
    return this.#flow.stats();
  }

  /** Those of each stage, from the source on. Each is visible to `sluice/observe` by its name as well. */
  stages(): StageStats[] {
    return this.#flow.stages.map((stage) => stage.stats());
  }

  /** A step that turns one item into one. */
  stage<U>(name: string, fn: MapFunction<T, U>, options: StageOptions<T>): Pipeline<U> {
    const { clock, onDeadLetter } = this.#flow;
    const stage = new ItemStage(name, fn, options, clock, onDeadLetter !== undefined);
    this.#take();
    this.#flow.add(stage);
    return new Pipeline<U>(this.#flow);
  }

  /**
   * A step that gets all items as one stream, and gives as many as it likes: to sort, to batch, to leave out. What it
   * holds meanwhile has no bound, so it is marked in the stats.
   */
  whole<U>(name: string, fn: WholeFunction<T, U>, options: BufferOptions): Pipeline<U> {
    const stage = new WholeStage(name, fn, options, this.#flow.clock);
    this.#take();
    this.#flow.add(stage);
    return new Pipeline<U>(this.#flow);
  }

  /** Runs it, and calls `fn` for each result, one at a time. Resolves when all have been through. */
  forEach(fn: MapFunction<T, unknown>): Promise<void> {
    const { readerSignal: signal, onLateError } = this.#flow;
    return forEachLimit(this, 1, fn, { signal, onLateError });
  }

  /**
   * Stops as it runs, from the source to the end: nothing more is read from the source, which is closed; what has been
   * read goes on through all stages to the reader, who then sees the end.
   */
  close(): void {
    this.#flow.close();
  }

  /**
   * Runs it. To leave the loop ends all at once, and closes the source before the loop is left, unless that is at its
   * next item: then it is told to close, and not waited for.
   */
  [Symbol.asyncIterator](): AsyncIterableIterator<T, undefined> {
    this.#take();
    return this.#flow as AsyncIterableIterator<T, undefined>;
  }

  #take(): void {
    if (this.#isTaken) throw new TypeError("a pipeline can be read once, or go on to one stage");
    this.#isTaken = true;
  }
}
