/** The keys that go to a batch function together, and the promises of what it answers. */
import { BatchAnswerError } from "../errors.ts";
import type { BatchFunction, Batched } from "./batch-options.ts";

/** The value of the load that has this place; throws its error. */
type Answer<V> = (place: number) => V;

export class BatchCall<K, V> implements Batched {
  // I1  loads settle in the order of their places: the reactions to one promise run in the order they were made
  readonly group: unknown;
  /** Loads that are wanted, by what identifies their keys. */
  readonly loads: Map<unknown, Promise<V>> = new Map();
  /** The key of each load; what was given up leaves its place. */
  readonly places: (K | typeof GONE)[] = [];
  readonly failed: K[] = [];
  weight = 0;
  readonly #owner: BatchOwner<K, V>;
  readonly #controller = new AbortController();
  readonly #answered: Promise<Answer<V>>;
  #answer: (answer: Answer<V>) => void = ignore;
  #settled = 0;

  constructor(owner: BatchOwner<K, V>, group: unknown) {
    this.#owner = owner;
    this.group = group;
    this.#answered = new Promise((resolve) => (this.#answer = resolve));
  }

  get size(): number {
    return this.loads.size;
  }

  get ended(): Promise<unknown> {
    return this.#answered;
  }

  /** One reaction for all, which knows by its turn whose it is: functions for each would take twice as long. */
  add(id: unknown, key: K, weight: number): Promise<V> {
    const load = this.#answered.then(this.#take);
    this.weight += weight;
    this.places.push(key);
    this.loads.set(id, load);
    return load;
  }

  drop(id: unknown, place: number, reason: unknown): void {
    this.loads.delete(id);
    this.places[place] = GONE;
    if (this.size === 0) this.fail(reason);
  }

  async send(): Promise<void> {
    if (this.size === 0) return;
    const fn = this.#owner.start(this);
    const keys = this.places.filter((key): key is K => key !== GONE);
    const { length } = keys;
    const gaps = length < this.places.length ? this.places.map((key) => key === GONE) : undefined;
    try {
      const answer = await fn(keys, { signal: this.#controller.signal });
      if (answer?.length !== length) throw new BatchAnswerError(length, answer?.length);
      let next = 0;
      const outcomes = gaps?.map((isGap) => (isGap ? undefined : answer[next++])) ?? answer.slice();
      this.#answer((place) => {
        const outcome = outcomes[place];
        if (outcome instanceof Error) throw outcome;
        return outcome as V;
      });
    } catch (error) {
      this.fail(error);
    }
  }

  fail(error: unknown): void {
    this.#owner.shut(this);
    this.#controller.abort(error);
    this.#answer(() => {
      throw error;
    });
  }

  readonly #take = (answer: Answer<V>): V => {
    const place = this.#settled;
    this.#settled += 1;
    try {
      return answer(place);
    } catch (error) {
      const key = this.places[place] as K | typeof GONE;
      if (key !== GONE) {
        this.failed.push(key);
        this.#owner.onError(key, this, error);
      }
      throw error;
    }
  };
}

/** What a batcher does about its calls. */
export interface BatchOwner<K, V> {
  /** The call is about to be sent, by this. */
  start(call: BatchCall<K, V>): BatchFunction<K, V>;
  /** Nothing more goes into it. */
  shut(call: BatchCall<K, V>): void;
  onError(key: K, call: BatchCall<K, V>, error: unknown): void;
}

const GONE: unique symbol = Symbol("gone");

function ignore(): void {}
