/**
 * Waits for the first of several things: items to take, room to put, time, aborts. Exactly one happens; the others lose
 * nothing, since each leaves its line in the turn in which one is claimed. Racing promises would take from all of them.
 */
import type { Clock, Timer, TimerTask } from "../clock/clock.ts";
import { systemClock } from "../clock/system.ts";
import { TimeoutError } from "../errors.ts";
import { Watcher } from "../internal/abort.ts";
import { checkWait } from "../internal/check.ts";
import { type Random, systemRandom } from "../internal/random.ts";
import type { WaitOptions } from "../policy.ts";
import type { Ready, SelectClause } from "./select-clause.ts";
import type { Claim, Joined } from "./select-wait.ts";

/** By name; what is undefined can't happen, as if it weren't there. */
export type SelectClauses = Readonly<Record<string, SelectClause<unknown> | undefined>>;

/** Which clause it was, and what came of it: `value` narrows with `key`. */
export type Selected<C extends SelectClauses> = {
  [K in keyof C & string]: NonNullable<C[K]> extends SelectClause<infer V>
    ? { readonly key: K; readonly value: V }
    : never;
}[keyof C & string];

export interface TrySelectOptions {
  /** When several can happen: the first in the order of writing, instead of one by chance. @default false */
  readonly biased?: boolean | undefined;
  /** Chooses among several. @default systemRandom */
  readonly random?: Random | undefined;
}

export interface SelectOptions extends TrySelectOptions, WaitOptions {
  /** Runs `timeoutMs` and `elapsing`. @default systemClock */
  readonly clock?: Clock | undefined;
}

/** What can happen now happens, at once: one of them. Else the first that can. Rejects if the call of that clause would. */
export function select<C extends SelectClauses>(clauses: C, options: SelectOptions = {}): Promise<Selected<C>> {
  try {
    checkWait(options);
    const { signal, timeoutMs = Infinity, clock = systemClock } = options;
    const entries = inTurn(clauses, options);
    const ready = attempt(entries);
    if (ready !== undefined) return Promise.resolve(ready as Selected<C>);
    signal?.throwIfAborted(); // by the code of a clause
    if (timeoutMs === 0) throw new TimeoutError(0);
    return new Promise((resolve, reject) => {
      const selection = new Selection(resolve as (selected: SelectedAny) => void, reject);
      selection.join(entries, clock, timeoutMs, signal);
    });
  } catch (error) {
    return Promise.reject(error);
  }
}

/** What can happen now happens, at once: one of them. Else undefined, where other languages have a default clause. */
export function trySelect<C extends SelectClauses>(
  clauses: C,
  options: TrySelectOptions = {},
): Selected<C> | undefined {
  return attempt(inTurn(clauses, options)) as Selected<C> | undefined;
}

type Entry = [key: string, clause: SelectClause<unknown>];
type SelectedAny = { readonly key: string; readonly value: unknown };

/** Those that are there, in the order in which they are asked. */
function inTurn(clauses: SelectClauses, { biased = false, random = systemRandom }: TrySelectOptions): Entry[] {
  const entries = Object.entries(clauses).filter((entry): entry is [string, SelectClause<unknown>] => {
    const [key, clause] = entry;
    if (clause === undefined || typeof clause?.attempt === "function") return clause !== undefined;
    throw new TypeError(`clause ${key} must be made by taking, putting and the like, got ${typeof clause}`);
  });
  if (entries.length === 0) throw new RangeError("clauses must have one at least that is not undefined, got none");
  if (biased) return entries;
  for (let left = entries.length; left > 1; left -= 1) {
    const chosen = Math.floor(random() * left);
    const last = entries[left - 1] as Entry;
    entries[left - 1] = entries[chosen] as Entry;
    entries[chosen] = last;
  }
  return entries;
}

function attempt(entries: readonly Entry[]): SelectedAny | undefined {
  for (const [key, clause] of entries) {
    const ready: Ready<unknown> | undefined = clause.attempt();
    if (ready !== undefined) return { key, value: ready.value };
  }
  return undefined;
}

/** One call that waits. */
class Selection extends Watcher {
  // I1  #joined are the clauses that wait; none does once #isOver
  readonly #resolve: (selected: SelectedAny) => void;
  readonly #reject: (reason: unknown) => void;
  #joined: Joined[] = [];
  #isOver = false;

  constructor(resolve: (selected: SelectedAny) => void, reject: (reason: unknown) => void) {
    super();
    this.#resolve = resolve;
    this.#reject = reject;
  }

  /** Its signal has aborted, and it is about to hear of it. */
  get isDoomed(): boolean {
    return this.watchers?.signal.aborted === true;
  }

  /** Throws what a clause, the clock or the signal throws; then nothing waits. */
  join(entries: readonly Entry[], clock: Clock, timeoutMs: number, signal: AbortSignal | undefined): void {
    try {
      if (signal !== undefined) this.watch(signal);
      if (timeoutMs < Infinity) this.#add(new Timeout(this, clock, timeoutMs));
      for (const [key, clause] of entries) {
        if (!this.#isOver) this.#add(clause.join(new SelectionClaim(this, key), clock));
      }
    } catch (error) {
      this.seize();
      throw error;
    }
  }

  override onAbort(reason: unknown): void {
    this.fail(reason);
  }

  seize(): void {
    if (this.#isOver) return;
    this.#isOver = true; // before they leave: each that does would seize as well
    this.unwatch();
    for (const each of this.#joined) each.leave();
    this.#joined = [];
  }

  win(selected: SelectedAny): void {
    this.#resolve(selected);
  }

  /** Changes nothing once it is over. */
  fail(reason: unknown): void {
    this.seize();
    this.#reject(reason);
  }

  /** Foreign code may have decided it while this one joined. */
  #add(joined: Joined): void {
    if (this.#isOver) joined.leave();
    else this.#joined.push(joined);
  }
}

class SelectionClaim implements Claim<unknown> {
  readonly #selection: Selection;
  readonly #key: string;

  constructor(selection: Selection, key: string) {
    this.#selection = selection;
    this.#key = key;
  }

  get isDoomed(): boolean {
    return this.#selection.isDoomed;
  }

  abort(): void {
    this.#selection.onAbort(this.#selection.watchers?.signal.reason);
  }

  seize(): void {
    this.#selection.seize();
  }

  win(value: unknown): void {
    this.#selection.win({ key: this.#key, value });
  }

  fail(reason: unknown): void {
    this.#selection.fail(reason);
  }
}

class Timeout implements Joined, TimerTask {
  readonly #selection: Selection;
  readonly #timeoutMs: number;
  readonly #timer: Timer;

  constructor(selection: Selection, clock: Clock, timeoutMs: number) {
    this.#selection = selection;
    this.#timeoutMs = timeoutMs;
    this.#timer = clock.setTimer(timeoutMs, this);
  }

  onTimer(): void {
    const error = new TimeoutError(this.#timeoutMs);
    queueMicrotask(() => this.#selection.fail(error)); // one microtask later: what happens in the same turn wins
  }

  leave(): void {
    this.#timer.cancel();
  }
}
