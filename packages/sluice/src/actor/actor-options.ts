/** What an actor is made with, hands on, and tells. */
import type { Clock } from "../clock/clock.ts";
import type { WhenFull } from "../flow/queue-options.ts";
import type { NameOptions } from "../internal/names.ts";
import type { Random } from "../internal/random.ts";
import type { RunContext } from "../policy.ts";
import type { Backoff } from "../resilience/backoff.ts";
import type { Actor } from "./actor.ts";

export interface MessageContext extends RunContext {
  /** Aborts when who asked has left, and with `abort`. */
  readonly signal: AbortSignal;
}

/** Handles one message, and is awaited before the next. What it returns is the reply to who asked. */
export type Receive<M, R> = (message: M, context: MessageContext) => R | PromiseLike<R>;

/** Why a state is put away: for a new one, since nobody needs it for now, or for good. */
export type RetireReason = "restart" | "idle" | "end";

export interface Behavior<M, R> {
  readonly receive: Receive<M, R>;
  /** Awaited before the state is gone: to save it, or to close what it holds. A failure is told as that of a `tell`. */
  readonly retire?: ((why: RetireReason) => unknown) | undefined;
}

export interface ActorContext<M, R> {
  readonly self: Actor<M, R>;
  /** Aborts when this state is put away: for what goes on in the background. */
  readonly signal: AbortSignal;
  /** As `new Actor`, for a child: it ends with this state, and what it escalates fails this actor. */
  spawn<N, S = unknown>(this: void, capacity: number, setup: Setup<N, S>, options?: ActorOptions<N>): Actor<N, S>;
}

/**
 * Makes the state, which lives in the closure of the function that comes back and nowhere else. Called for the first
 * message, and for the next one after each restart or passivation.
 */
export type Setup<M, R> = (
  context: ActorContext<M, R>,
) => Receive<M, R> | Behavior<M, R> | PromiseLike<Receive<M, R> | Behavior<M, R>>;

/**
 * What becomes of an actor that has failed. The message that failed is lost, and who asked gets the error; the mailbox is
 * kept, unless it stops.
 * - `"resume"`: it goes on with the state it has.
 * - `"restart"`: the state is put away, its children end, and the next message finds a new one.
 * - `"stop"`: it ends, and what is in its mailbox is undelivered.
 * - `"escalate"`: it stops, and its parent fails with the same error. Without a parent and without anybody who watches
 *   it, the error is an unhandled rejection.
 */
export type Decision = "resume" | "restart" | "stop" | "escalate";

export interface Failure<M> {
  /** What was handled, also while the state was made for it; undefined for what a child escalated. */
  readonly message: M | undefined;
  /** Failures without a success in between, this one included. */
  readonly inARow: number;
}

/** Which children restart with the one that does: none, all, or those that were spawned after it. */
export type ChildStrategy = "one-for-one" | "one-for-all" | "rest-for-one";

/** What makes a message, or a reply, one that shares nothing with the original; `byValue` is one. */
export type Copier = <T>(value: T) => Copied<T>;

export interface Copied<T> {
  readonly copy: T;
  /** What it adds to `stats().copiedBytes`. */
  readonly bytes: number;
}

export interface ActorOptions<M> extends NameOptions {
  /** What becomes of a message that finds the mailbox full; a function is asked for each. @default "wait" */
  readonly whenFull?: WhenFull | ((message: M) => WhenFull) | undefined;
  /**
   * What becomes of the actor when a message fails. A function hears of each failure, and decides; if it throws, that is
   * escalated. Without one, the failure of a `tell` is an unhandled rejection. @default "restart"
   */
  readonly onFailure?: Decision | ((error: unknown, failure: Failure<M>) => Decision) | undefined;
  /** Restarts within `restartWindowMs`; the next failure is escalated. An integer >= 0. @default Infinity */
  readonly maxRestarts?: number | undefined;
  /** At least 0. @default 60_000 */
  readonly restartWindowMs?: number | undefined;
  /**
   * How long it rests before it goes on with a new state, though not after the first failure in a row: attempt 1 is the
   * second failure. @default exponential from 100 ms to 10 s, with full jitter
   */
  readonly backoff?: Backoff | undefined;
  /** @default "one-for-one" */
  readonly children?: ChildStrategy | undefined;
  /** After so long without a message the state is put away; the next message makes a new one. At least 0. @default Infinity */
  readonly idleMs?: number | undefined;
  /** A message that takes longer is told to `onSlow`, once, while it is still handled. At least 0. @default Infinity */
  readonly slowMs?: number | undefined;
  /** What it throws is an unhandled rejection. */
  readonly onSlow?: ((message: M, ranMs: number) => void) | undefined;
  /** Copies each message as it is sent, and each reply: `byValue`, so that no reference is shared. @default none */
  readonly copy?: Copier | undefined;
  /**
   * Whether a wait that would close a ring (a asks b, b asks a) gets `WaitCycleError`. It needs the runtime's async
   * context, which takes about as long as all else that a message does.
   * @default true where the runtime keeps it at no cost to others, as Node 24 does
   */
  readonly findCycles?: boolean | undefined;
  /**
   * Gets each message that was told, accepted, and will never be handled: evicted for another (`reason` is a
   * `QueueFullError`), or in the mailbox when it was cleared or the actor stopped. Who asked gets the reason as the
   * rejection instead. What it throws is an unhandled rejection.
   */
  readonly onUndelivered?: ((message: M, reason: unknown) => void) | undefined;
  /** Draws the back-off. @default Math.random */
  readonly random?: Random | undefined;
  /** @default systemClock */
  readonly clock?: Clock | undefined;
}

/** How it ended. */
export interface ActorEnd {
  /** Of a failure, or of `abort`; undefined after `close`. */
  readonly reason: unknown;
  readonly why: "closed" | "aborted" | "failed";
}

export type ActorStats = Readonly<{
  /** Messages in the mailbox, and the age of the oldest; 0 if there is none. */
  size: number;
  capacity: number;
  oldestAgeMs: number;
  waitingSenders: number;
  /** Who asked and has no reply yet. */
  waitingReplies: number;
  /** Whether a message is handled now, or a state put away: 0 or 1, and so never more than `concurrency`. */
  running: number;
  concurrency: number;
  /** How long the message at hand has been handled, if the actor has a `name` or `slowMs`. */
  oldestRunMs: number;
  /** Messages that were handled, and those of them that failed. */
  completed: number;
  failed: number;
  restarts: number;
  /** How often the state was put away since nobody needed it. */
  passivated: number;
  /** Messages that took longer than `slowMs`. */
  slow: number;
  /** Messages turned away because the mailbox was full or had ended, and those refused since they would close a ring. */
  rejected: number;
  cycles: number;
  /** Messages given up for want of room: those that came, and those that were evicted for them. */
  dropped: number;
  /** Messages that were accepted and never handled: evicted, cleared, or left at the end. */
  undelivered: number;
  /** Messages that were passed over because who asked had left. */
  skipped: number;
  /** Replies, and failures, for which nobody waited any more. */
  lateReplies: number;
  /** Calls that got nothing, because of their `timeoutMs` or because their signal aborted. */
  timedOut: number;
  aborted: number;
  /** The longest chain of asks that has reached it: 1 for who asks from outside of any actor. */
  deepestAsk: number;
  /** What `copy` said of messages and replies, in all. */
  copiedBytes: number;
  children: number;
  closed: boolean;
}>;
