/** The side of an actor that its senders see: the mailbox, who waits for room in it, and who waits for replies. */
import type { Clock } from "../clock/clock.ts";
import { QueueFullError, WaitCycleError } from "../errors.ts";
import { type Granted, QueueCore } from "../flow/queue-core.ts";
import { isContextFree } from "../internal/async-context.ts";
import { checkFunction, checkWait } from "../internal/check.ts";
import { notice } from "../internal/probe.ts";
import { tell } from "../internal/tell.ts";
import type { Wait } from "../internal/wait.ts";
import { WaitList } from "../internal/wait-list.ts";
import type { WaitOptions } from "../policy.ts";
import type { ActorOptions, ActorStats } from "./actor-options.ts";
import { Ask } from "./ask.ts";
import { type Entry, MailboxStore } from "./mailbox-store.ts";
import { currentTurn, type Party, pathOfWaits, type Turn } from "./turn.ts";

/** The actor itself. */
export interface Owner extends Party {
  readonly isBusy: boolean;
  wake(): void;
}

/** Of the stats, what is known here. */
type InboxStats = Pick<
  ActorStats,
  | "size"
  | "capacity"
  | "oldestAgeMs"
  | "waitingSenders"
  | "waitingReplies"
  | "rejected"
  | "dropped"
  | "timedOut"
  | "aborted"
  | "cycles"
  | "undelivered"
  | "skipped"
  | "lateReplies"
  | "deepestAsk"
  | "copiedBytes"
>;

const IN = Promise.resolve(true);
const DROPPED = Promise.resolve(false);

export class Inbox<M, R> {
  // I1  an ask is in #replies until its promise is settled, and in the mailbox or the line for room only while it is there
  // I2  each accepted message is taken by `next` once, or lost once, or skipped once since who asked has left
  readonly findsCycles: boolean;
  readonly core: QueueCore<Entry<M, R>, object>;
  readonly #owner: Owner;
  readonly #options: ActorOptions<M>;
  readonly #clock: Clock;
  readonly #store: MailboxStore<M, R>;
  readonly #replies: WaitList<R, Ask<M, R>>;
  readonly #counts = { cycles: 0, undelivered: 0, skipped: 0, lateReplies: 0, deepestAsk: 0, copiedBytes: 0 };

  constructor(owner: Owner, capacity: number, options: ActorOptions<M>, clock: Clock) {
    const { whenFull, onUndelivered, copy, findCycles } = options;
    if (onUndelivered !== undefined) checkFunction("onUndelivered", onUndelivered);
    if (copy !== undefined) checkFunction("copy", copy);
    this.findsCycles = findCycles ?? isContextFree();
    this.#owner = owner;
    this.#options = options;
    this.#clock = clock;
    this.#store = new MailboxStore(clock);
    this.core = new QueueCore<Entry<M, R>, object>(owner, capacity, this.#store, clock, {
      whenFull: typeof whenFull === "function" ? (entry) => whenFull(messageOf(entry)) : whenFull,
      onUndelivered: (entry, reason) => this.#lose(entry, reason),
    });
    this.#replies = new WaitList({ owner, onLeave: (ask, reason) => this.#left(ask, reason) });
  }

  get size(): number {
    return this.#store.size;
  }

  stats(): InboxStats {
    const { producers, rejected, dropped, capacity } = this.core;
    const now = this.#clock.now();
    return {
      size: this.size,
      capacity,
      oldestAgeMs: Math.max(0, now - (this.#store.oldestAt ?? now)),
      waitingSenders: producers.size,
      waitingReplies: this.#replies.size,
      ...this.#counts,
      rejected: rejected + this.#counts.cycles,
      dropped,
      timedOut: producers.timedOut + this.#replies.timedOut,
      aborted: producers.aborted + this.#replies.aborted,
    };
  }

  tell(message: M, options?: WaitOptions): Promise<boolean> {
    const { core } = this;
    try {
      if (options !== undefined) checkWait(options);
      const entry = this.#copied(message);
      const isIn = core.tryPut(entry);
      if (isIn === undefined) return this.#waitForRoom(entry, options);
      if (!this.#owner.isBusy) this.#owner.wake();
      return isIn ? IN : DROPPED;
    } catch (error) {
      return Promise.reject(error);
    }
  }

  tryTell(message: M): boolean {
    const outcome = this.core.offer(this.#copied(message));
    if (typeof outcome === "string") this.core.rejected += 1;
    if (!this.#owner.isBusy) this.#owner.wake();
    return outcome === true;
  }

  ask(message: M, options: WaitOptions): Promise<R> {
    try {
      checkWait(options);
      const ask = new Ask<M, R>(this.#copied(message), this.#asker());
      if (this.#owner.isBusy) this.#replies.refuseHaste(options);
      ask.reply = this.#replies.wait(options, this.#clock, ask) as Wait<R, Ask<M, R>>;
      this.#send(ask);
      if (ask.depth > this.#counts.deepestAsk) this.#counts.deepestAsk = ask.depth;
      if (!this.#owner.isBusy) this.#owner.wake();
      return ask.reply;
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** Settles the wait of who asked, if it goes on. */
  reply(ask: Ask<M, R>, value: R): void {
    if (!this.#isAwaited(ask)) return;
    const { reply } = ask;
    try {
      const copy = this.#copied(value);
      this.#replies.remove(reply);
      ask.from?.endWait(this.#owner);
      reply.grant(copy);
    } catch (error) {
      reply.reject(error); // the work is done, only its result cannot be sent
    }
  }

  replyError(ask: Ask<M, R>, error: unknown): void {
    if (this.#isAwaited(ask)) ask.reply.reject(error);
  }

  /** Gives up what is in the mailbox. */
  clear(reason: unknown): number {
    const entries = this.#store.clear();
    for (const entry of entries) this.#lose(entry, reason);
    this.core.onRoom();
    return entries.length;
  }

  #copied<T>(value: T): T {
    const { copy } = this.#options;
    if (copy === undefined) return value;
    const copied = copy(value);
    this.#counts.copiedBytes += copied.bytes;
    return copied.copy;
  }

  /** The turn that is about to wait for the actor, if any. Throws if the actor waits for it. */
  #asker(): Turn | undefined {
    const from = this.findsCycles ? currentTurn() : undefined;
    if (from === undefined) return undefined;
    from.actor.isAsker = true;
    const path = pathOfWaits(this.#owner, from.actor);
    if (path === undefined) return from;
    const error = new WaitCycleError([...path.slice(-1), ...path]);
    this.#counts.cycles += 1;
    notice?.("rejected", this.#owner, error);
    throw error;
  }

  #waitForRoom(entry: M, options: WaitOptions = {}): Promise<boolean> {
    const { producers } = this.core;
    producers.refuseHaste(options);
    options.signal?.throwIfAborted(); // by `whenFull`
    const from = this.#asker();
    const wait = producers.wait(options, this.#clock, entry) as Promise<boolean>;
    if (from === undefined) return wait;
    from.beginWait(this.#owner);
    const end = (): void => from.endWait(this.#owner);
    wait.then(end, end);
    return wait;
  }

  /** Its reply is awaited already, since signal and clock are foreign code and may throw. */
  #send(ask: Ask<M, R>): void {
    ask.from?.beginWait(this.#owner);
    try {
      const isIn = this.core.tryPut(ask);
      if (isIn === false) throw new QueueFullError(this.core.capacity);
      if (!ask.isAwaited) this.#withdraw(ask); // an abort by `whenFull`
      else if (isIn === undefined) this.#joinLine(ask);
    } catch (error) {
      this.#replies.remove(ask.reply);
      ask.from?.endWait(this.#owner);
      throw error;
    }
  }

  #joinLine(ask: Ask<M, R>): void {
    const place = this.core.producers.wait({}, this.#clock, ask);
    ask.at = "line";
    ask.place = place as Wait<Granted<Entry<M, R>, object>, unknown>;
    place.then(undefined, (error: unknown) => ask.reply.reject(error)); // it was closed meanwhile
  }

  /** Its promise rejects, for whatever reason. */
  #left(ask: Ask<M, R>, reason: unknown): void {
    ask.from?.endWait(this.#owner);
    if (ask.at === "hand") this.#owner.turn?.abort(reason);
    else this.#withdraw(ask);
  }

  #withdraw(ask: Ask<M, R>): void {
    if (ask.place !== undefined) this.core.producers.remove(ask.place);
    if (ask.at === "mailbox") {
      this.#counts.skipped += 1;
      this.#store.forget(ask);
      this.core.onRoom();
    }
    ask.at = "gone";
  }

  #isAwaited(ask: Ask<M, R>): boolean {
    ask.at = "gone";
    if (ask.isAwaited) return true;
    this.#counts.lateReplies += 1;
    return false;
  }

  /** What was accepted will not be handled. */
  #lose(entry: Entry<M, R>, reason: unknown): void {
    this.#counts.undelivered += 1;
    if (entry instanceof Ask) return entry.reply.reject(reason);
    notice?.("dropped", this.#owner, entry);
    tell(this.#options.onUndelivered, entry, reason);
  }
}

export function messageOf<M, R>(entry: Entry<M, R>): M {
  return entry instanceof Ask ? entry.message : entry;
}
