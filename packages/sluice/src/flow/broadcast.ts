/**
 * One to many: each item goes to all that subscribe, each of whom reads at a pace of its own and says what becomes of
 * an item that finds it too far behind. For items of which each goes to one reader only, use `Queue`.
 */
import type { Clock } from "../clock/clock.ts";
import { systemClock } from "../clock/system.ts";
import { ClosedError } from "../errors.ts";
import { checkInteger, checkWait } from "../internal/check.ts";
import { type NameOptions, register } from "../internal/names.ts";
import { Ring } from "../internal/ring.ts";
import { firstLive, WaitList } from "../internal/wait-list.ts";
import type { WaitOptions } from "../policy.ts";
import {
  openSubscription,
  type Station,
  type SubscribeOptions,
  type Subscriber,
  type Subscription,
} from "./broadcast-subscription.ts";

export interface BroadcastOptions extends NameOptions {
  /**
   * Of the latest items, how many a newcomer gets first; no more than its own capacity. With 1, and subscribers of
   * capacity 1 that drop the oldest, it is a value to be watched: who reads gets the latest. An integer >= 0. @default 0
   */
  readonly replay?: number | undefined;
  /** Runs `timeoutMs` and tells ages. @default systemClock */
  readonly clock?: Clock | undefined;
}

export type BroadcastStats = Readonly<{
  subscribers: number;
  /** Items that went out. */
  published: number;
  /** Items that are kept for newcomers. */
  replayed: number;
  /** How far the slowest subscriber is behind. */
  largestLag: number;
  /** Items that subscribers missed for want of room, of those that are gone as well. */
  missed: number;
  waitingPublishers: number;
  /** Age of the longest wait of a publisher that goes on; 0 if none waits. */
  oldestWaitMs: number;
  /** Items turned away because somebody had no room or the broadcast had ended, those of waiting publishers included. */
  rejected: number;
  /** Publishers that gave up, because of their `timeoutMs` or because their signal aborted while they waited. */
  timedOut: number;
  aborted: number;
  closed: boolean;
}>;

/** A new `Broadcast`. */
export function broadcast<T>(options: BroadcastOptions = {}): Broadcast<T> {
  return new Broadcast(options);
}

/** `publish` waits, `offer` answers at once. An item must not be a promise: `take` would await it. */
export class Broadcast<T> {
  // I1  an item goes to all subscribers in one turn or to none, in the order of the publishers
  // I2  #full subscribers make wait; a publisher waits only while there is one
  // I3  once ended, nobody waits and nobody subscribes to more than the replay
  readonly name: string | undefined;
  readonly replay: number;
  readonly #clock: Clock;
  readonly #station: Station<T>;
  readonly #subscribers = new Set<Subscriber<T>>();
  readonly #recent = new Ring<T>();
  readonly #publishers = new WaitList<number, T>();
  #full = 0;
  #published = 0;
  #rejected = 0;
  #missedByGone = 0;
  #state: "open" | "closed" | "failed" = "open";
  #endedBy: unknown;

  constructor(options: BroadcastOptions = {}) {
    this.replay = checkInteger("replay", options.replay ?? 0, { min: 0 });
    this.#clock = options.clock ?? systemClock;
    this.name = options.name;
    this.#station = {
      clock: this.#clock,
      onFull: () => void (this.#full += 1),
      onRoom: () => {
        this.#full -= 1;
        this.#admit();
      },
      onLeft: (subscriber) => {
        if (this.#subscribers.delete(subscriber)) this.#missedByGone += subscriber.missed;
      },
    };
    register("broadcast", options, this);
  }

  get subscribers(): number {
    return this.#subscribers.size;
  }

  get closed(): boolean {
    return this.#state !== "open";
  }

  stats(): BroadcastStats {
    const all = [...this.#subscribers];
    return {
      subscribers: all.length,
      published: this.#published,
      replayed: this.#recent.size,
      largestLag: Math.max(0, ...all.map(({ size }) => size)),
      missed: this.#missedByGone + all.reduce((sum, { missed }) => sum + missed, 0),
      waitingPublishers: this.#publishers.size,
      oldestWaitMs: this.#publishers.oldestWaitMs(this.#clock),
      rejected: this.#rejected,
      timedOut: this.#publishers.timedOut,
      aborted: this.#publishers.aborted,
      closed: this.closed,
    };
  }

  /**
   * What is published from now on, after what is replayed. Throws for bad options, and the reason of a signal that has
   * aborted. Of a broadcast that has ended there is the replay, and then its end.
   */
  subscribe(options: SubscribeOptions): Subscription<T> {
    const subscriber = openSubscription(options, this.#station);
    const now = this.#clock.now();
    for (const item of this.#latest(subscriber.capacity)) subscriber.deliver(item, now);
    if (this.closed) subscriber.end(this.#endedBy, this.#state === "failed");
    else this.#subscribers.add(subscriber);
    return subscriber;
  }

  /**
   * Resolves when the item has gone out, with the number of subscribers it went to. If somebody makes it wait, it has
   * gone to nobody until all have room; if it gives up, to nobody at all.
   */
  publish(item: T, options: WaitOptions = {}): Promise<number> {
    try {
      checkWait(options);
      if (this.closed) throw this.#refuse(this.#endedBy);
      if (this.#full === 0) return Promise.resolve(this.#deliver(item)); // overtakes nobody (I2)
      this.#publishers.refuseHaste(options);
      return this.#publishers.wait(options, this.#clock, item);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** True if the item has gone out; false if somebody would make it wait, or the broadcast has ended. */
  offer(item: T): boolean {
    const goesOut = !this.closed && this.#full === 0;
    if (goesOut) this.#deliver(item);
    else this.#rejected += 1;
    return goesOut;
  }

  /** Publishers, also those that wait, get `ClosedError`; subscribers get what they have not read, and then the end. */
  close(): void {
    if (!this.closed) this.#end("closed", new ClosedError("broadcast"));
  }

  /** Whoever publishes, reads or waits gets `error`, at once. The first error stays. */
  fail(error: unknown): void {
    if (!this.closed) this.#end("failed", error);
  }

  #deliver(item: T): number {
    const now = this.#clock.now();
    this.#published += 1;
    if (this.replay > 0) {
      if (this.#recent.size === this.replay) this.#recent.shift();
      this.#recent.push(item);
    }
    let reached = 0;
    for (const subscriber of this.#subscribers) if (subscriber.deliver(item, now)) reached += 1;
    return reached;
  }

  #admit(): void {
    while (this.#full === 0) {
      const publisher = firstLive(this.#publishers);
      if (publisher === undefined) return;
      this.#publishers.remove(publisher);
      publisher.grant(this.#deliver(publisher.brought));
    }
  }

  #latest(count: number): T[] {
    const items = Array.from({ length: this.#recent.size }, () => {
      const item = this.#recent.shift() as T;
      this.#recent.push(item); // once round, and all are where they were
      return item;
    });
    return items.slice(-count);
  }

  #refuse(error: unknown): unknown {
    this.#rejected += 1;
    return error;
  }

  #end(state: "closed" | "failed", reason: unknown): void {
    this.#state = state;
    this.#endedBy = reason;
    this.#rejected += this.#publishers.size;
    this.#publishers.rejectAll(reason);
    for (const subscriber of this.#subscribers) subscriber.end(reason, state === "failed");
  }
}
