/**
 * An actor for each key, made by the first message for it and put away when it has been idle: an account, a room, a
 * device. There is never more than one of a key at a time, so that what its setup loads and its `retire` saves cannot
 * get lost between two.
 */
import { ClosedError, QueueFullError } from "../errors.ts";
import { checkFunction, checkInteger, checkMs, checkWait } from "../internal/check.ts";
import { asyncDispose } from "../internal/dispose.ts";
import { register } from "../internal/names.ts";
import { notice } from "../internal/probe.ts";
import type { WaitOptions } from "../policy.ts";
import type { ActorContext, ActorOptions, Setup } from "./actor-options.ts";
import { type Keeper, ManagedActor } from "./mailbox-actor.ts";

export interface KeyedActorsOptions<M> extends ActorOptions<M> {
  /**
   * Actors at a time. For one more, that which has been idle longest is put away; while none is idle, its message is
   * turned away with `QueueFullError`. Those that are being put away count no more. An integer >= 1. @default 10_000
   */
  readonly maxActors?: number | undefined;
  /** After so long without a message an actor is put away. At least 0. @default 60_000 */
  readonly idleMs?: number | undefined;
}

export type KeyedActorsStats = Readonly<{
  /** Keys that have an actor, and those of them that are idle. */
  actors: number;
  maxActors: number;
  idle: number;
  /** Actors made and put away so far. */
  made: number;
  passivated: number;
  /** Messages turned away because there were too many actors, or all were closed. */
  rejected: number;
  closed: boolean;
}>;

/** As `Setup`, for the actor of `key`. */
export type KeyedSetup<K, M, R> = (key: K, context: ActorContext<M, R>) => ReturnType<Setup<M, R>>;

export interface KeyedActors<K, in M, out R = unknown> extends AsyncDisposable {
  readonly name: string | undefined;
  /** Keys that have an actor. */
  readonly size: number;
  readonly closed: boolean;
  has(key: K): boolean;
  /** As for `Actor`, whose mailbox is the key's own. */
  tell(key: K, message: M, options?: WaitOptions): Promise<boolean>;
  tryTell(key: K, message: M): boolean;
  ask(key: K, message: M, options?: WaitOptions): Promise<R>;
  /** Newcomers get `ClosedError`; what was accepted is handled, then all end. */
  close(): void;
  /** Closes, gives up what is in the mailboxes and aborts the messages at hand. */
  abort(reason?: unknown): void;
  /** Resolves when all that there are now have nothing to do, or have ended. */
  drain(options?: WaitOptions): Promise<void>;
  stats(): KeyedActorsStats;
}

class Actors<K, M, R> implements KeyedActors<K, M, R>, Keeper {
  // I1  a key has an entry from its first message until its actor has put its state away and is empty, or is over
  // I2  #idle holds those that have a state and nothing to do, the one that has been idle longest first
  // I3  at most #max actors are neither in #leaving nor over
  readonly name: string | undefined;
  readonly #capacity: number;
  readonly #setup: KeyedSetup<K, M, R>;
  readonly #options: KeyedActorsOptions<M>;
  readonly #max: number;
  readonly #actors = new Map<K, ManagedActor<M, R>>();
  readonly #keys = new Map<object, K>();
  readonly #idle = new Set<ManagedActor<M, R>>();
  readonly #leaving = new Set<ManagedActor<M, R>>();
  readonly #counts = { made: 0, passivated: 0, rejected: 0 };
  #isClosed = false;

  constructor(capacity: number, setup: KeyedSetup<K, M, R>, options: KeyedActorsOptions<M> = {}) {
    const { name, dependency, maxActors = 10_000, idleMs = 60_000, ...others } = options;
    this.#capacity = checkInteger("capacity", capacity, { min: 1 });
    checkFunction("setup", setup);
    this.#max = checkInteger("maxActors", maxActors, { min: 1 });
    this.#setup = setup;
    this.#options = { ...others, idleMs: checkMs("idleMs", idleMs) };
    void new ManagedActor<M, R>(capacity, () => () => undefined as R, this.#options); // what is wrong with the others, at once
    this.name = name;
    register("keyed-actors", { name, dependency }, this);
  }

  get size(): number {
    return this.#actors.size;
  }

  get closed(): boolean {
    return this.#isClosed;
  }

  has(key: K): boolean {
    return this.#actors.has(key);
  }

  stats(): KeyedActorsStats {
    const { size } = this;
    return { actors: size, maxActors: this.#max, idle: this.#idle.size, ...this.#counts, closed: this.#isClosed };
  }

  tell(key: K, message: M, options?: WaitOptions): Promise<boolean> {
    try {
      return this.#actorFor(key).tell(message, options);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  tryTell(key: K, message: M): boolean {
    const actor = this.#find(key);
    return actor !== undefined && actor.tryTell(message);
  }

  ask(key: K, message: M, options?: WaitOptions): Promise<R> {
    try {
      return this.#actorFor(key).ask(message, options);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  close(): void {
    this.#isClosed = true;
    for (const actor of this.#actors.values()) actor.close();
  }

  abort(reason?: unknown): void {
    this.#isClosed = true;
    for (const actor of this.#actors.values()) actor.abort(reason);
  }

  async drain(options: WaitOptions = {}): Promise<void> {
    checkWait(options); // also where there is none
    await Promise.all([...this.#actors.values()].map((actor) => actor.drain(options)));
  }

  async [asyncDispose](): Promise<void> {
    this.close();
    await this.drain();
  }

  becameIdle(idle: object, hasState: boolean): void {
    const actor = idle as ManagedActor<M, R>;
    this.#leaving.delete(actor);
    if (hasState) return void this.#idle.add(actor);
    this.ended(actor);
    actor.close(); // its own code may still hold it, and must not make a second one of its key
  }

  ended(actor: object): void {
    const key = this.#keys.get(actor);
    if (!this.#keys.delete(actor)) return;
    this.#counts.passivated += 1;
    this.#actors.delete(key as K);
    this.#idle.delete(actor as ManagedActor<M, R>);
    this.#leaving.delete(actor as ManagedActor<M, R>);
  }

  #actorFor(key: K): ManagedActor<M, R> {
    const actor = this.#find(key);
    if (actor !== undefined) return actor;
    const error = this.#isClosed ? new ClosedError("actors") : new QueueFullError(this.#max);
    notice?.("rejected", this, error);
    throw error;
  }

  /** For a message that is about to be sent. */
  #find(key: K): ManagedActor<M, R> | undefined {
    const actor = this.#actors.get(key);
    if (actor !== undefined) {
      this.#idle.delete(actor);
      this.#leaving.delete(actor);
      return actor;
    }
    if (!this.#isClosed && this.#hasRoom()) return this.#make(key);
    this.#counts.rejected += 1;
    return undefined;
  }

  #hasRoom(): boolean {
    if (this.size - this.#leaving.size < this.#max) return true;
    const [oldest] = this.#idle;
    if (oldest === undefined) return false;
    this.#idle.delete(oldest);
    this.#leaving.add(oldest);
    oldest.passivate();
    return true;
  }

  #make(key: K): ManagedActor<M, R> {
    const actor = new ManagedActor<M, R>(this.#capacity, (context) => this.#setup(key, context), this.#options);
    actor.label = `${this.name ?? "actor"} ${textOf(key)}`;
    actor.keeper = this;
    this.#actors.set(key, actor);
    this.#keys.set(actor, key);
    this.#counts.made += 1;
    return actor;
  }
}

/** For messages: an object may have no text, or one that throws. */
function textOf(key: unknown): string {
  try {
    return String(key);
  } catch {
    return typeof key;
  }
}

/** `capacity` is that of each mailbox: an integer >= 1. Disposing of it is `close` and a wait for the end of all. */
export const KeyedActors: new <K, M, R = unknown>(
  capacity: number,
  setup: KeyedSetup<K, M, R>,
  options?: KeyedActorsOptions<M>,
) => KeyedActors<K, M, R> = Actors;
