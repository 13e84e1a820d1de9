/**
 * Finds calls that wait for the slots that their own callers hold. A call knows by its async context which call it was
 * made from, and to enter one takes as long as all else that a start does. So they all enter it only from the moment a
 * call was made within a call here; until then the first hundred do, and of the others a few.
 */
import type { Clock, Timer, TimerTask } from "../../clock/clock.ts";
import { SelfWaitError } from "../../errors.ts";
import { AsyncContext } from "../../internal/async-context.ts";
import type { Request } from "./request.ts";
import type { Run } from "./run.ts";

const FIRST = 100;
/** A prime, or it might meet the same of calls that follow one another in a pattern each time. */
const EVERY = 251;

/** One for all limiters, so that a call is found behind a call of another. */
const context = new AsyncContext<Run>();

export class SelfWaits implements TimerTask {
  // I1  #held is the sum of the weights of the calls that run here and from within which somebody waits here
  // I2  a timer is set while these hold all slots that are taken, and what is next in line doesn't fit beside them
  readonly #clock: Clock;
  readonly #stallMs: number;
  readonly #requests = new Set<Request>();
  #starts = 0;
  /** Runs that have entered their context and are not over. */
  #live = 0;
  /** Whether a call was made within another. */
  #isNested = false;
  #held = 0;
  #timer: Timer | undefined;
  /** Waits that were ended. */
  count = 0;

  constructor(clock: Clock, stallMs: number) {
    this.#clock = clock;
    this.#stallMs = stallMs;
  }

  /** Whether somebody waits from within a call, or did until now: then each change is to be judged. */
  get isConcerned(): boolean {
    return this.#requests.size > 0 || this.#timer !== undefined;
  }

  /** Whether this start is to enter its context. */
  isCurious(): boolean {
    const isIt = this.wouldBeCurious();
    this.#starts += 1;
    return isIt;
  }

  /** Whether the next start is to. */
  wouldBeCurious(): boolean {
    if (this.#isNested || (this.#live > 0 && this.find() !== undefined)) return true;
    return this.#starts < FIRST || (this.#starts + 1) % EVERY === 0;
  }

  /** The call that runs here and within which this is called. */
  find(): Run | undefined {
    const run = this.#own(context.get());
    if (run !== undefined) this.#isNested = true;
    return run;
  }

  /** Starts in the turn of the caller, whose context stays as it is. */
  within<T>(run: Run, start: (run: Run) => T): T {
    this.#mark(run);
    return context.run(run, () => start(run));
  }

  /** For a promise reaction, whose context ends with it. */
  enter(run: Run): void {
    this.#mark(run);
    context.enter(run);
  }

  joined(request: Request, within: Run): void {
    request.within = within;
    this.#requests.add(request);
    for (let run: Run | undefined = within; run !== undefined; run = this.#own(run.around)) {
      run.waitingWithin += 1;
      if (run.waitingWithin === 1) this.#held += run.weight;
    }
  }

  left(request: Request): void {
    if (!this.#requests.delete(request)) return;
    for (let run = this.#own(request.within); run !== undefined; run = this.#own(run.around)) {
      run.waitingWithin -= 1;
      if (run.waitingWithin === 0) this.#held -= run.weight;
    }
  }

  ended(run: Run): void {
    if (run.isWatched) this.#live -= 1;
    if (run.waitingWithin > 0) this.#held -= run.weight;
  }

  /** After each change. */
  judge(taken: number, isFull: boolean): void {
    if (this.#requests.size > 0 && isFull && this.#held === taken)
      this.#timer ??= this.#clock.setTimer(this.#stallMs, this);
    else if (this.#timer !== undefined) {
      this.#timer.cancel();
      this.#timer = undefined;
    }
  }

  onTimer(): void {
    const timer = this.#timer;
    // One microtask later: what ends in the same turn gives its slot back first.
    queueMicrotask(() => {
      if (timer === undefined || timer !== this.#timer) return;
      this.#timer = undefined;
      this.count += 1;
      [...this.#requests].at(-1)?.wait?.reject(new SelfWaitError("limiter"));
    });
  }

  #mark(run: Run): void {
    this.#live += 1;
    run.owner = this;
    const around = nearest(context.get());
    if (around !== undefined) around.around = nearest(around.around); // or each would keep all before it
    run.around = around;
  }

  #own(from: Run | undefined): Run | undefined {
    let run = nearest(from);
    while (run !== undefined && run.owner !== this) run = nearest(run.around);
    return run;
  }
}

function nearest(from: Run | undefined): Run | undefined {
  let run = from;
  while (run?.isOver === true) run = run.around;
  return run;
}
