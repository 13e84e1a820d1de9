import { asPlainPromise, Wait } from "../internal/wait.ts";

/** The right to be the one clause that happens, which a select gives to each of its clauses. */
export interface Claim<V> extends Seizing {
  win(value: V): void;
  fail(reason: unknown): void;
}

export interface Seizing {
  /** The select has been aborted, and is about to hear of it: nothing may happen any more. */
  readonly isDoomed: boolean;
  /** Lets it hear of it. */
  abort(): void;
  /** Makes every clause leave, before anything is handed over. */
  seize(): void;
}

/** A clause that waits. */
export interface Joined {
  /** Gives it up; does nothing once there is nothing to give up. */
  leave(): void;
}

/**
 * A place in a queue's line that belongs to a select. When it leaves the line, granted or not, its siblings leave theirs
 * in the same turn, so that no other can be granted as well. As a promise it never settles: the select does.
 */
export class ClauseWait<T, B> extends Wait<T, B> implements Joined {
  // I1  while it is in line, its select has neither happened nor failed
  readonly #claim: Seizing;
  readonly #win: (value: T) => void;
  readonly #fail: (reason: unknown) => void;

  constructor(joinedAt: number, brought: B, claim: Seizing, win: (value: T) => void, fail: (reason: unknown) => void) {
    super(joinedAt, brought);
    this.#claim = claim;
    this.#win = win;
    this.#fail = fail;
  }

  override get isDoomed(): boolean {
    return this.#claim.isDoomed;
  }

  /** Told by who finds it doomed: it watches no signal itself. */
  override onAbort(): void {
    this.#claim.abort();
  }

  override disarm(): void {
    super.disarm();
    this.#claim.seize();
  }

  override grant(value: T): void {
    this.#win(value);
  }

  override reject(reason: unknown): void {
    if (this.lane === undefined) return;
    this.leave();
    this.#fail(reason);
  }

  leave(): void {
    const list = this.lane?.list;
    if (list === undefined) return;
    list.remove(this);
    void list.onLeave?.(this.brought, undefined);
  }
}

asPlainPromise(ClauseWait);
