/**
 * Watches what stats cannot tell: who holds what since when and from where, who waits for whom, and what was collected
 * unreleased. It costs a record, an async context and, unless switched off, a stack for each permit and each wait.
 */
import type { Clock, Timer, TimerTask } from "../clock/clock.ts";
import { systemClock } from "../clock/system.ts";
import { checkMs } from "../internal/check.ts";
import { dispose } from "../internal/dispose.ts";
import { probe, setProbe } from "../internal/probe.ts";
import { onEvent, tellOf } from "./events.ts";
import { Ledger } from "./ledger.ts";
import { deadlockReport } from "./checks/deadlock.ts";
import { WaitFor } from "./wait-for.ts";

export interface EnableOptions {
  /** Keep the stacks of who took or waits, which is most of the cost. @default true */
  readonly stacks?: boolean | undefined;
  /** A wait that could not have ended for this long is told as the event `stalled`. At least 0. @default 500 */
  readonly stallMs?: number | undefined;
  /** Tells ages, and when to look. @default systemClock */
  readonly clock?: Clock | undefined;
}

/** Disposing of it is the same as `disable`. */
export interface Watch extends Disposable {
  /** Stops watching and forgets all. Does nothing the second time. */
  disable(): void;
}

let current: Watching | undefined;

/**
 * Starts watching all primitives, named or not; what was taken before that is not known. One watch at a time: an `Error`
 * while another is on.
 *
 * Who somebody is goes by async context: `run` of whatever admits work makes an identity, and so do `activity` and the
 * tasks of a `TaskGroup`. A bare `acquire` outside all of these has none: it counts for what is held too long or lost,
 * but no ring of waits can be seen through it. Runtimes without `AsyncLocalStorage` know no identities at all.
 *
 * Until it is disabled, retries, hedges and failovers with a name have a `run` of their own, which tells the doctor what
 * is called within their attempts. Without `AsyncLocalStorage` they keep that of their class.
 */
export function enable(options: EnableOptions = {}): Watch {
  if (current !== undefined) throw new Error("watching is enabled already: disable the other watch first");
  current = new Watching(options);
  return current;
}

/** What the watch that is on has seen. */
export function currentLedger(): Ledger | undefined {
  return current?.ledger;
}

/** Calls `fn` as somebody of its own, for who takes and waits by bare calls: a request, a message, a round. */
export function activity<T>(fn: () => T): T {
  return probe === undefined ? fn() : probe.enter(fn);
}

class Watching implements Watch, TimerTask {
  readonly ledger: Ledger;
  readonly #stallMs: number;
  readonly #clock: Clock;
  readonly #told = new WeakSet<object>();
  readonly #stopListening: () => void;
  #timer: Timer | undefined;
  #isOver = false;

  constructor({ stacks = true, stallMs = 500, clock = systemClock }: EnableOptions) {
    this.#stallMs = checkMs("stallMs", stallMs);
    this.#clock = clock;
    this.ledger = new Ledger(clock, stacks, () => this.#look());
    setProbe(this.ledger);
    this.ledger.nesting?.start();
    this.#stopListening = onEvent(({ name, subject, detail }) => {
      if (name === "failed") this.ledger.failed(subject, detail);
    });
  }

  disable(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#timer?.cancel();
    current = undefined;
    setProbe(undefined);
    this.ledger.nesting?.stop();
    this.#stopListening();
  }

  [dispose](): void {
    this.disable();
  }

  onTimer(): void {
    this.#timer = undefined;
    if (this.#isOver) return;
    const lenders = this.ledger.lenders();
    const now = this.#clock.now();
    for (const ring of new WaitFor(lenders, now, this.#stallMs).rings()) {
      const [first] = ring;
      if (first === undefined || ring.some((wait) => this.#told.has(wait))) continue;
      for (const wait of ring) this.#told.add(wait);
      tellOf("stalled", first.lender.subject, deadlockReport(ring, now));
    }
    if (lenders.some(({ waits }) => waits.size > 0)) this.#look();
  }

  /** Only while somebody waits. */
  #look(): void {
    this.#timer ??= this.#clock.setTimer(this.#stallMs, this, { background: true });
  }
}
