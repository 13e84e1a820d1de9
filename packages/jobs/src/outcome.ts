/** What a handler can say about an attempt besides returning a result: not now, never, and "I have settled it". */
import { checkDuration } from "./validate.ts";

const settled: unique symbol = Symbol("settled");

/** An object, since the type of a symbol is widened on its way out of an `async` function. */
export interface Settled {
  readonly [settled]: true;
}

/** Returned by a handler that has settled the job itself, in a transaction of its own: the worker writes nothing. */
export const SETTLED: Settled = Object.freeze({ [settled]: true as const });

/** Returned by a handler to have the job again later, without charging the attempt. Made by `snooze`. */
export class Snooze {
  readonly delayMs: number;
  readonly reason: string | undefined;

  constructor(delayMs: number, reason: string | undefined) {
    this.delayMs = checkDuration("delayMs", delayMs);
    this.reason = reason;
  }
}

/** `return snooze(60_000, "the provider rests")`. `delayMs` is from 0 to 4.32e15; the reason is shown with the job. */
export function snooze(delayMs: number, reason?: string): Snooze {
  return new Snooze(delayMs, reason);
}

/** Thrown by a handler when no further attempt can help: the job is dead at once. */
export class UnrecoverableError extends Error {
  override readonly name = "UnrecoverableError";
  readonly code = "UNRECOVERABLE";
}

/** Why the signal of an attempt aborted whose job may have been given to somebody else. */
export class LeaseLostError extends Error {
  override readonly name = "LeaseLostError";
  readonly code = "LEASE_LOST";
  readonly id: string;

  constructor(id: string) {
    super(`the lease of job ${id} is lost`);
    this.id = id;
  }
}

const MAX_MESSAGE = 8_192;

/** How an error is kept with the job: not longer than 8,192 characters, and fit for any database. */
export function describeError(error: unknown): string {
  let text: string;
  try {
    text = String(error);
  } catch {
    text = "an error that can't be shown";
  }
  return text.slice(0, MAX_MESSAGE).toWellFormed();
}
