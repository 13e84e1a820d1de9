/** The keys that go to a batch function together, and the promises of what it answers. */
import { BatchAnswerError } from "../errors.ts";
import { keepModel } from "../internal/model.ts";
import type { BatchFunction, Batched } from "./batch-options.ts";
import { LoadContext } from "./load-context.ts";

export class BatchCall<K, V> implements Batched {
  // I1  loads settle in the order of their places: the reactions to one promise run in the order they were made
  // I2  while there is no #index, no load may be given up, the keys are their own ids, and none is there twice; they are
  //     numbers, each greater than the one before, while there is no #seen
  readonly group: unknown;
  /** The key of each load; what was given up leaves its place. */
  readonly places: (K | typeof GONE)[] = [];
  readonly failed: K[] = [];
  /** Loads that are wanted. */
  size = 0;
  weight = 0;
  readonly #owner: BatchOwner<K, V>;
  readonly #context = new LoadContext();
  readonly #answered: Promise<readonly (V | Error)[]>;
  /** By id, the load, or the place of one that hasn't been asked for again. */
  #index: Map<unknown, Promise<V> | number> | undefined;
  #greatest = -Infinity;
  #seen: Set<unknown> | undefined;
  #answer: (outcomes: readonly (V | Error)[]) => void = ignore;
  #fail: (error: unknown) => void = ignore;
  #settled = 0;

  constructor(owner: BatchOwner<K, V>, group: unknown) {
    this.#owner = owner;
    this.group = group;
    this.#index = owner.needsIndex ? new Map() : undefined;
    this.#answered = new Promise((resolve, reject) => {
      this.#answer = resolve;
      this.#fail = reject;
    });
  }

  get ended(): Promise<unknown> {
    return this.#answered.then(ignore, ignore);
  }

  /** The load of this id, if one is wanted. */
  find(id: unknown): Promise<V> | undefined {
    if (this.#isNew(id)) return undefined;
    const index = this.#indexed();
    const found = index.get(id);
    if (typeof found !== "number") return found;
    const load = this.#answered.then((outcomes) => valueOf(outcomes[found] as V | Error));
    index.set(id, load);
    return load;
  }

  /**
   * For an id that was looked for and not found, unless it is the first. One reaction for all, which knows by its turn whose it is: functions for each would take
   * twice as long.
   */
  add(id: unknown, key: K, weight: number, mayLeave: boolean): Promise<V> {
    const load = this.#answered.then(this.#take, this.#refuse);
    if (this.places.length === 0) this.#isNew(id);
    if (mayLeave || this.#index !== undefined) this.#indexed().set(id, load);
    this.size += 1;
    this.weight += weight;
    this.places.push(key);
    return load;
  }

  drop(id: unknown, place: number, reason: unknown): void {
    this.#index?.delete(id);
    this.places[place] = GONE;
    this.size -= 1;
    if (this.size === 0) this.fail(reason);
  }

  async send(): Promise<void> {
    const { size, places } = this;
    if (size === 0) return;
    const fn = this.#owner.start(this);
    const isWhole = size === places.length;
    const gaps = isWhole ? undefined : places.map((key) => key === GONE);
    try {
      const keys = (isWhole ? places.slice() : places.filter((key) => key !== GONE)) as K[];
      const answer = await fn(keys, this.#context);
      if (answer?.length !== size) throw new BatchAnswerError(size, answer?.length);
      let next = 0;
      this.#answer(gaps?.map((isGap) => (isGap ? undefined : answer[next++]) as V | Error) ?? answer.slice());
    } catch (error) {
      this.fail(error);
    }
  }

  fail(error: unknown): void {
    this.#owner.shut(this);
    LoadContext.abort(this.#context, error);
    this.#fail(error);
  }

  /**
   * Whether it is the first time that this is asked for the id; if that isn't known, no. One look at a set is half of two
   * at an index; and keys often come in order, as a query or a list has them, which takes none.
   */
  #isNew(id: unknown): boolean {
    if (this.#index !== undefined) return false;
    if (this.#seen === undefined && typeof id === "number" && id > this.#greatest) {
      this.#greatest = id;
      return true;
    }
    this.#seen ??= new Set(this.places);
    const { size } = this.#seen;
    return this.#seen.add(id).size > size;
  }

  #indexed(): Map<unknown, Promise<V> | number> {
    return (this.#index ??= new Map(this.places.map((key, place) => [key, place])));
  }

  readonly #take = (outcomes: readonly (V | Error)[]): V => {
    const outcome = outcomes[this.#settled] as V | Error;
    if (outcome instanceof Error) return this.#refuse(outcome);
    this.#settled += 1;
    return outcome;
  };

  readonly #refuse = (error: unknown): never => {
    const key = this.places[this.#settled] as K | typeof GONE;
    this.#settled += 1;
    if (key !== GONE) {
      this.failed.push(key);
      this.#owner.onError(key, this, error);
    }
    throw error;
  };
}

function valueOf<V>(outcome: V | Error): V {
  if (outcome instanceof Error) throw outcome;
  return outcome;
}

/** What a batcher does about its calls. */
export interface BatchOwner<K, V> {
  /** Keys aren't their own ids, or it has to know the load of each. */
  readonly needsIndex: boolean;
  /** The call is about to be sent, by this. */
  start(call: BatchCall<K, V>): BatchFunction<K, V>;
  /** Nothing more goes into it. */
  shut(call: BatchCall<K, V>): void;
  onError(key: K, call: BatchCall<K, V>, error: unknown): void;
}

const GONE: unique symbol = Symbol("gone");

function ignore(): void {}

keepModel(new BatchCall({ needsIndex: false } as BatchOwner<unknown, unknown>, undefined));
