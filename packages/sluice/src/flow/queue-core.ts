/** The inside of every queue: its two lines, and what passes between them. Its files and `select` wait in these lines. */
import type { Clock } from "../clock/clock.ts";
import { ClosedError, QueueFullError } from "../errors.ts";
import { checkFunction, checkOneOf } from "../internal/check.ts";
import { notice } from "../internal/probe.ts";
import { tell } from "../internal/tell.ts";
import type { Wait } from "../internal/wait.ts";
import { firstLive, WaitList } from "../internal/wait-list.ts";
import type { WaitOptions } from "../policy.ts";
import type { QueueOptions, WhenFull } from "./queue-options.ts";
import type { QueueStore } from "./queue-store.ts";
import { issueReservation, type PlaceKeeper, type Reservation } from "./reserve.ts";

/** What a producer is granted: whether its item is in, or the place that it wanted. */
export type Granted<T, I extends object> = boolean | Reservation<T, I>;

/** Of producers. */
export type Line<T, I extends object> = WaitList<Granted<T, I>, unknown>;

/** `I` are the options of an item. An entry is what the store keeps of a put. */
export class QueueCore<T, I extends object> implements PlaceKeeper<T, I> {
  // I1  store.size + reserved <= capacity
  // I2  producers wait only while there is no room, consumers only while no item is ready; when both do, the producers
  //     want but a place, or what is in must ripen
  // I3  items leave in the order of the store, to consumers in the order those came; no newcomer overtakes, but for an
  //     item that evicts another
  // I4  once ended, no producer waits; once over, no consumer does
  readonly capacity: number;
  readonly clock: Clock;
  readonly store: QueueStore<T, I>;
  readonly producers: Line<T, I>;
  readonly consumers: WaitList<T>;
  /** Undefined until it is closed. Who reads this error from this queue has come to the end of it. */
  closedBy: ClosedError | undefined;
  reserved = 0;
  accepted = 0;
  rejected = 0;
  dropped = 0;
  undelivered = 0;
  readonly #owner: object;
  readonly #whenFull: WhenFull | ((item: T) => WhenFull);
  readonly #onUndelivered: ((item: T, reason: unknown) => void) | undefined;
  #state: "open" | "closed" | "failed" = "open";
  #endedBy: unknown;
  #isServing = false;

  /** `owner` is the queue as others see it. */
  constructor(
    owner: object,
    capacity: number,
    store: QueueStore<T, I>,
    clock: Clock,
    options: QueueOptions<T>,
    producers: Line<T, I> = new WaitList({ owner }),
  ) {
    this.#owner = owner;
    const { whenFull = "wait", onUndelivered } = options;
    if (onUndelivered !== undefined) checkFunction("onUndelivered", onUndelivered);
    this.capacity = capacity;
    this.store = store;
    this.clock = clock;
    this.producers = producers;
    this.consumers = new WaitList<T>({ owner, onLeave: store.expect && (() => this.expect()) });
    this.#whenFull = typeof whenFull === "function" ? whenFull : checkPolicy(whenFull);
    this.#onUndelivered = onUndelivered;
  }

  get isEnded(): boolean {
    return this.#state !== "open";
  }

  /** Whether no consumer will get anything any more. */
  get isOver(): boolean {
    return this.#state === "failed" || (this.isEnded && this.store.size === 0 && this.reserved === 0);
  }

  /** Whether there is an item now, which may be what nobody had taken when it failed. */
  hasNext(): boolean {
    if (this.consumers.size > 0 && this.store.isReady) this.onReady(); // ripe, but its timer has yet to fire (I3)
    return this.store.isReady || (this.producers.size > 0 && this.#giver() !== undefined);
  }

  /** Whether a consumer gets an item now; throws if it never will. */
  canTake(): boolean {
    if (this.#state !== "failed" && this.hasNext()) return true;
    if (this.isOver) throw this.#endedBy;
    return false;
  }

  /** Only if there is one. */
  next(): T {
    if (!this.store.isReady) return this.#meet();
    const item = this.store.shift();
    if (this.producers.size > 0) this.#admit();
    else if (this.#state === "closed") this.#settleEnd();
    return item;
  }

  /** Adds to `batch` what is there, until it has `max`. */
  drainTo(batch: T[], max: number): T[] {
    while (batch.length < max && this.hasNext()) batch.push(this.next());
    return batch;
  }

  /** Only while there is no item. */
  waitForItem(options: WaitOptions): Promise<T> {
    try {
      this.store.expect?.(true); // its clock is foreign code, and may throw: before anybody is in line
      return this.consumers.wait(options, this.clock);
    } finally {
      this.expect();
    }
  }

  /** As `waitForItem`, for a wait that the caller has made. */
  joinConsumers<W extends Wait<T>>(wait: W, signal: AbortSignal | undefined): W {
    try {
      this.store.expect?.(true);
      return this.consumers.join(wait, signal, this.clock);
    } finally {
      this.expect();
    }
  }

  /** Tells the store whether anybody waits. */
  expect(): void {
    this.store.expect?.(this.consumers.size > 0);
  }

  /** Whether it is in, or why not. */
  offer(entry: unknown): boolean | "wait" | "reject" {
    if (this.isEnded) return "reject";
    if (this.#accept(entry)) return true;
    let policy = this.#whenFull;
    if (typeof policy === "function") {
      policy = checkPolicy(policy(this.store.itemOf(entry)));
      if (this.isEnded) return "reject"; // all may have changed meanwhile
      if (this.#accept(entry)) return true;
    }
    if (policy === "wait" || policy === "reject") return policy;
    this.dropped += 1;
    const evicted = policy === "drop-oldest" ? this.store.evict(entry) : undefined;
    notice?.("dropped", this.#owner, evicted === undefined ? this.store.itemOf(entry) : evicted.item);
    if (evicted === undefined) return false;
    this.#accept(entry);
    this.#lose(evicted.item, new QueueFullError(this.capacity));
    return true;
  }

  /** True if it is in, false if it was dropped, undefined if it must wait; throws if it is refused. */
  tryPut(entry: unknown): boolean | undefined {
    const outcome = this.offer(entry);
    if (outcome === "reject") throw this.refusal();
    return outcome === "wait" ? undefined : outcome;
  }

  /** Why nothing is accepted now. Counts who is told. */
  refusal(): unknown {
    const error = this.isEnded ? this.#endedBy : new QueueFullError(this.capacity);
    this.rejected += 1;
    notice?.("rejected", this.#owner, error);
    return error;
  }

  /** A place now, or why not. */
  tryReserve(): Reservation<T, I> | "wait" | "reject" {
    if (!this.isEnded && this.#free > 0) return this.#issue();
    return this.isEnded || this.#whenFull === "reject" ? "reject" : "wait";
  }

  fillPlace(entry: unknown): boolean {
    this.reserved -= 1;
    const isIn = this.#state !== "failed" && this.#accept(entry);
    this.onRoom();
    return isIn;
  }

  vacate(): void {
    this.reserved -= 1;
    this.onRoom();
  }

  /** A place is free that wasn't. */
  onRoom(): void {
    if (this.isEnded) this.#settleEnd();
    else this.#admit();
  }

  /** An item was taken out by who knows it. */
  onRemoved(): void {
    this.undelivered += 1;
    this.onRoom();
  }

  /** An item is ready that wasn't, and somebody waits for it. Only where items ripen. */
  onReady(): void {
    if (this.#isServing) return; // a producer was let in meanwhile
    this.#isServing = true;
    try {
      for (let consumer = firstLive(this.consumers); consumer !== undefined; consumer = firstLive(this.consumers)) {
        if (!this.store.isReady) break;
        this.consumers.remove(consumer);
        consumer.grant(this.next());
      }
    } finally {
      this.#isServing = false; // the clock is foreign code, and may throw
    }
    this.expect();
  }

  close(what: string): void {
    if (!this.isEnded) this.#end("closed", (this.closedBy = new ClosedError(what)));
  }

  /** The first error stays. */
  fail(error: unknown): void {
    if (this.#state === "failed") return;
    this.#end("failed", error);
    if (this.#onUndelivered !== undefined) for (const item of this.store.clear()) this.#lose(item, error);
  }

  get #free(): number {
    return this.capacity - this.store.size - this.reserved;
  }

  #accept(entry: unknown): boolean {
    const { consumers, store } = this;
    const consumer = consumers.size > 0 && store.expect === undefined ? firstLive(consumers) : undefined;
    if (consumer !== undefined) {
      consumers.remove(consumer);
      consumer.grant(store.itemOf(entry)); // handed over, never through the store: nobody can slip in (I3)
    } else if (this.#free > 0) store.add(entry); // overtakes nobody (I2)
    else return false;
    this.accepted += 1;
    return true;
  }

  /** Who can hand over an item past the store: nothing is in, since all places are held or there is none. */
  #giver(): Wait<Granted<T, I>, unknown> | undefined {
    if (this.store.size > 0 || this.store.expect !== undefined) return undefined;
    const first = firstLive(this.producers);
    return first?.brought === PLACE ? this.producers.live().find(({ brought }) => brought !== PLACE) : first;
  }

  #meet(): T {
    const producer = this.#giver() as Wait<Granted<T, I>, unknown>;
    this.producers.remove(producer);
    this.accepted += 1;
    producer.grant(true);
    return this.store.itemOf(producer.brought);
  }

  /** Lets in who waits, as far as there is room. */
  #admit(): void {
    while (this.#free > 0) {
      const producer = firstLive(this.producers);
      if (producer === undefined) return;
      this.producers.remove(producer);
      if (producer.brought === PLACE) producer.grant(this.#issue());
      else {
        this.accepted += 1;
        producer.grant(true);
        this.store.add(producer.brought, producer.joinedAt);
      }
    }
  }

  #issue(): Reservation<T, I> {
    this.reserved += 1;
    return issueReservation(this);
  }

  #lose(item: T, reason: unknown): void {
    this.undelivered += 1;
    tell(this.#onUndelivered, item, reason);
  }

  #end(state: "closed" | "failed", reason: unknown): void {
    this.#state = state;
    this.#endedBy = reason;
    notice?.("closed", this.#owner, reason);
    this.rejected += this.producers.size;
    this.producers.rejectAll(reason);
    this.#settleEnd();
  }

  #settleEnd(): void {
    if (this.isOver) this.consumers.rejectAll(this.#endedBy);
  }
}

/** Brought by who waits for a place only. */
export const PLACE: unique symbol = Symbol("place");

function checkPolicy(policy: WhenFull): WhenFull {
  return checkOneOf("whenFull", policy, ["wait", "reject", "drop-newest", "drop-oldest"]);
}
