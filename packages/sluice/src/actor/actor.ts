/**
 * State with a mailbox: one message at a time, each finished before the next, so that what belongs together changes
 * together without a lock. The state lives in a closure that nobody else can reach; it is given up and made anew when a
 * message fails. All of it is in memory: what must outlive the process is a job with a strict key. What spans two actors
 * is a small distributed transaction: make them one.
 */
import type { ActorEnd, ActorOptions, ActorStats, Setup } from "./actor-options.ts";
import type { WaitOptions } from "../policy.ts";
import { ManagedActor } from "./mailbox-actor.ts";

export interface Actor<in M, out R = unknown> extends AsyncDisposable {
  readonly capacity: number;
  readonly name: string | undefined;
  /** Messages in the mailbox. */
  readonly size: number;
  /** Whether it takes nothing new. */
  readonly closed: boolean;

  /**
   * Sends a message and waits for no reply, only for room. Resolves with true when it is in the mailbox, with false if it
   * was dropped. Messages of one sender who awaits each, or sends all in one turn, are handled in the order of sending.
   * `QueueFullError` where the full mailbox rejects, `ClosedError` once closed, `WaitCycleError` for who would wait for
   * itself.
   */
  tell(message: M, options?: WaitOptions): Promise<boolean>;

  /** True if the message is in; false if there is no room for it, or the actor is closed. Throws only what `copy` or `whenFull` throws. */
  tryTell(message: M): boolean;

  /**
   * Sends a message and resolves with what its handler returns, or rejects with what it throws. `signal` and `timeoutMs`
   * limit all of it: the wait for room, in the mailbox, and for the reply; with 0, only an actor that is idle is asked.
   * Who leaves early lets a message that hasn't begun be passed over, and aborts the signal of one that has. An ask within
   * a handler counts as awaited by it: one that would close a ring gets `WaitCycleError`.
   */
  ask(message: M, options?: WaitOptions): Promise<R>;

  /** Calls `listener` once when it has ended, at once if it has already. Returns how to stop watching. */
  watch(listener: (end: ActorEnd) => void): () => void;

  /** Resolves as soon as nothing is handled and the mailbox is empty; once closed, when it has ended. It turns nobody away. */
  drain(options?: WaitOptions): Promise<void>;

  /**
   * Gives up what is in the mailbox: who asked gets `reason`, and what was told goes to `onUndelivered`. Returns how many
   * there were. With `close` before it, the actor ends after the message at hand. @param reason default `ClearedError`
   */
  clear(reason?: unknown): number;

  /** Newcomers, and senders that wait for room, get `ClosedError`; what was accepted is handled, and then it ends. */
  close(): void;

  /**
   * Closes, gives up what is in the mailbox, and aborts the signal of the message at hand, after which it ends.
   * @param reason as for `AbortController.abort`
   */
  abort(reason?: unknown): void;

  stats(): ActorStats;
}

/**
 * `capacity` is how many messages may be in the mailbox: an integer >= 1. Handlers run in the async context in which the
 * actor was made; what a message is to bring along must be in it. Disposing of it is `close` and a wait for its end.
 */
export const Actor: new <M, R = unknown>(
  capacity: number,
  setup: Setup<M, R>,
  options?: ActorOptions<M>,
) => Actor<M, R> = ManagedActor;
