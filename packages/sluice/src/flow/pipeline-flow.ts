/** A pipeline under way: items go from the source through the buffers and stages to who reads the results. */
import type { Clock } from "../clock/clock.ts";
import { systemClock } from "../clock/system.ts";
import { ClosedError } from "../errors.ts";
import { Watcher } from "../internal/abort.ts";
import { checkFunctions, checkSignal } from "../internal/check.ts";
import { register } from "../internal/names.ts";
import { forEachLimit } from "./for-each-limit.ts";
import { closeSource, openSource, type Source } from "./lanes-source.ts";
import { mapStream } from "./map-stream.ts";
import type { DeadLetter, PipelineOptions, PipelineStats } from "./pipeline-options.ts";
import type { Flow, Stage } from "./pipeline-stage.ts";
import { untilClosed } from "./source-closing.ts";

export class PipelineFlow extends Watcher implements Flow, AsyncIterableIterator<unknown, undefined> {
  // I1  an item is in one place: with the source, in a buffer, with a stage, or read
  // I2  once over, all that runs has its signal aborted, nothing starts, and the source has been closed if it had not ended
  // I3  after `close` nothing is read from the source; what had been read goes on to the end
  readonly name: string | undefined;
  readonly clock: Clock;
  readonly onDeadLetter: ((letter: DeadLetter) => unknown) | undefined;
  readonly onLateError: ((error: unknown) => void) | undefined;
  readonly stages: Stage[] = [];
  readonly #source: Source<unknown>;
  readonly #caller: AbortSignal | undefined;
  readonly #work = new AbortController();
  readonly #reader = new AbortController();
  #results: AsyncIterableIterator<unknown, undefined> | undefined;
  #sourceClosed: Promise<void> | undefined;
  /** The latest of the source. */
  #answer: unknown;
  #read = 0;
  #delivered = 0;
  #isInside = false;
  #isClosed = false;
  #isOver = false;

  constructor(source: Iterable<unknown> | AsyncIterable<unknown>, options: PipelineOptions) {
    super();
    checkSignal(options.signal);
    this.name = options.name;
    this.clock = options.clock ?? systemClock;
    this.onDeadLetter = options.onDeadLetter;
    this.onLateError = options.onLateError;
    checkFunctions(options, ["onDeadLetter", "onLateError"]);
    this.#caller = options.signal;
    this.#source = openSource(source);
    register("pipeline", options, this);
  }

  /** Of the stages. */
  get signal(): AbortSignal {
    return this.#work.signal;
  }

  /** Of whoever reads the results: aborts when there will be no more by an error. */
  get readerSignal(): AbortSignal {
    return this.#reader.signal;
  }

  add(stage: Stage): void {
    register("stage", { name: this.name === undefined ? stage.name : `${this.name}/${stage.name}` }, stage);
    this.stages.push(stage);
  }

  stats(): PipelineStats {
    const { stages } = this;
    const sum = (of: (stage: Stage) => number): number => stages.reduce((total, stage) => total + of(stage), 0);
    return {
      stages: stages.length,
      wholeStages: sum(({ isWhole }) => Number(isWhole)),
      size: sum(({ queue }) => queue.size),
      capacity: sum(({ queue }) => queue.capacity),
      running: sum(({ running }) => running),
      workers: sum(({ workers }) => workers),
      oldestAgeMs: Math.max(0, ...stages.map(({ queue }) => queue.oldestAgeMs)),
      read: this.#read,
      delivered: this.#delivered,
      deadLettered: sum(({ deadLettered }) => deadLettered),
      bottleneck: this.#bottleneck(),
      closed: this.#isClosed,
    };
  }

  next(): Promise<IteratorResult<unknown, undefined>> {
    try {
      if (this.#isOver && this.#results === undefined) return Promise.resolve(END);
      this.#results ??= this.#start();
      return this.#results.next().then(this.#onResult, this.#onFailure);
    } catch (error) {
      this.close();
      this.#isOver = true;
      return Promise.reject(error);
    }
  }

  /** Nobody wants the rest. */
  async return(): Promise<IteratorReturnResult<undefined>> {
    if (this.#results === undefined) this.close();
    this.#end(new ClosedError("pipeline"));
    await this.#results?.return?.();
    const closed = this.#sourceClosed?.catch(() => {}); // told as a late error
    if (closed !== undefined) await untilClosed(closed, this.#answer, () => {});
    return END;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#closeSource().catch((error: unknown) => this.onLateError?.(error));
  }

  fail(error: unknown): void {
    if (this.#isOver) return;
    this.#end(error);
    this.#reader.abort(error);
  }

  override onAbort(reason: unknown): void {
    this.fail(reason);
  }

  #start(): AsyncIterableIterator<unknown, undefined> {
    this.#caller?.throwIfAborted();
    if (this.#caller !== undefined) this.watch(this.#caller);
    const { signal, onLateError } = this;
    const source = this.#tap();
    let results: AsyncIterableIterator<unknown, undefined> | undefined;
    let from: Stage | undefined;
    for (const to of this.stages) {
      this.#feed(results ?? source, from, to);
      results = to.open(this);
      from = to;
    }
    const read = (item: unknown): unknown => {
      this.#read += 1;
      return item;
    };
    return results ?? mapStream(source, 1, read, { signal, onLateError });
  }

  /** The source, which can be closed though somebody reads it. */
  #tap(): Iterable<unknown> | AsyncIterable<unknown> {
    const { isAsync, iterator } = this.#source;
    const next = (): IteratorResult<unknown> | Promise<IteratorResult<unknown>> => {
      if (this.#isClosed) return END;
      this.#isInside = true;
      try {
        const answer = iterator.next();
        this.#answer = answer;
        return answer;
      } finally {
        this.#isInside = false;
      }
    };
    const tap = { next, return: (): Promise<unknown> => this.#closeSource() };
    const open = { [isAsync ? Symbol.asyncIterator : Symbol.iterator]: () => tap };
    return open as unknown as Iterable<unknown> | AsyncIterable<unknown>;
  }

  #closeSource(): Promise<void> {
    return (this.#sourceClosed ??= closeSource(this.#source, this.#isInside));
  }

  #feed(items: Iterable<unknown> | AsyncIterable<unknown>, from: Stage | undefined, to: Stage): void {
    const { signal, onLateError } = this;
    const pass = (): void => {
      if (from !== undefined) from.passedOn += 1;
    };
    const put = (item: unknown): void | Promise<void> => {
      if (from === undefined) this.#read += 1;
      if (!to.queue.offer(item)) return to.queue.put(item, { signal }).then(pass);
      pass();
    };
    forEachLimit(items, 1, put, { signal, onLateError }).then(
      () => to.queue.close(),
      (error: unknown) => this.fail(error),
    );
  }

  readonly #onResult = (result: IteratorResult<unknown, undefined>): IteratorResult<unknown, undefined> => {
    if (result.done === true) {
      this.#end(new ClosedError("pipeline")); // for what a stage left that did not want all its items
      return END;
    }
    const last = this.stages.at(-1);
    if (last !== undefined) last.passedOn += 1;
    this.#delivered += 1;
    return result;
  };

  readonly #onFailure = (error: unknown): never => {
    this.fail(error);
    throw error;
  };

  #end(reason: unknown): void {
    if (this.#isOver) return;
    this.#isOver = this.#isClosed = true;
    this.unwatch();
    this.#work.abort(reason);
    for (const { queue } of this.stages) queue.fail(reason); // or a whole stage would wait for its next item for ever
  }

  #bottleneck(): string {
    const held = this.stages.findLast(({ queue }) => queue.stats().waitingProducers > 0);
    if (held === undefined) return this.#isSinkSlow(this.stages.at(-1)) ? "sink" : "source";
    return held === this.stages.at(-1) && this.#isSinkSlow(held) ? "sink" : held.name;
  }

  #isSinkSlow(last: Stage | undefined): boolean {
    return last !== undefined && last.running === 0 && last.blocked > 0;
  }
}

const END: IteratorReturnResult<undefined> = { done: true, value: undefined };
