/**
 * Makes one call of many: loads that come together are answered by one query for all their keys, each with its own value
 * or error. For one result that many ask for, use `singleFlight`.
 */
import { checkFunction, checkFunctions, checkInteger, checkNumber, checkSignal } from "../internal/check.ts";
import { keepModel } from "../internal/model.ts";
import { register } from "../internal/names.ts";
import { BatchCall, type BatchOwner } from "./batch-call.ts";
import type {
  Batched,
  BatcherOptions,
  BatcherStats,
  BatchFunction,
  BatchSchedule,
  BatchStore,
  LoadOptions,
} from "./batch-options.ts";
import { followUntil } from "./follower.ts";
import { turnEnd } from "./turn-end.ts";

/** Batches loads for `fn`. */
export function batch<K, V>(fn: BatchFunction<K, V>, options: BatcherOptions<K, V> = {}): Batcher<K, V> {
  return new Batcher(fn, options);
}

export class Batcher<K, V> {
  // I1  a call is in #open until it is full, or is sent, or nobody waits for any of its keys
  // I2  a load has a claim from its making if all who have asked for it may leave
  readonly name: string | undefined;
  readonly #options: BatcherOptions<K, V>;
  readonly #maxSize: number;
  readonly #maxWeight: number;
  readonly #cache: BatchStore<V> | undefined;
  readonly #line: BatchSchedule;
  readonly #owner: BatchOwner<K, V>;
  readonly #open = new Map<unknown, BatchCall<K, V>>();
  /** One of those in #open, which is most likely to be asked for: looking it up takes a twentieth of a load. */
  #latest: BatchCall<K, V> | undefined;
  readonly #claims = new WeakMap<Promise<V>, Claim<K, V>>();
  readonly #counts = { batches: 0, keys: 0, hits: 0 };

  constructor(fn: BatchFunction<K, V>, options: BatcherOptions<K, V> = {}) {
    const { maxSize = Infinity, maxWeight = Infinity } = options;
    const atLeastOne = { min: 1, infinity: true };
    checkFunction("fn", fn);
    this.#maxSize = checkInteger("maxSize", maxSize, atLeastOne);
    this.#maxWeight = checkInteger("maxWeight", maxWeight, atLeastOne);
    checkFunctions(options, ["weight", "group", "keyOf", "cacheErrors"]);
    this.#options = options;
    this.#cache = options.cache;
    this.#line = options.line ?? atTurnEnd();
    this.#owner = {
      start: (call) => {
        this.#shut(call);
        this.#counts.batches += 1;
        this.#counts.keys += call.size;
        return fn;
      },
      needsIndex: options.keyOf !== undefined || options.cache !== undefined,
      shut: (call) => this.#shut(call),
      onError: (key, call, error) => this.#onError(key, call, error),
    };
    this.name = options.name;
    register("batch", options, this);
  }

  stats(): BatcherStats {
    return { ...this.#counts };
  }

  /**
   * The value of `key`. By an abort the caller leaves. When none is left, the key leaves its batch; when no key is left,
   * the signal of the batch aborts.
   */
  load(key: K, options?: LoadOptions): Promise<V> {
    try {
      const signal = options?.signal;
      if (signal !== undefined) {
        checkSignal(signal);
        signal.throwIfAborted();
      }
      const id = this.#id(key);
      const cached = this.#cache?.get(id);
      if (cached === undefined) return this.#ask(id, key, signal);
      this.#counts.hits += 1;
      return this.#join(cached, signal);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  #id(key: K): unknown {
    const { keyOf } = this.#options;
    return keyOf === undefined ? key : keyOf(key);
  }

  #ask(id: unknown, key: K, signal: AbortSignal | undefined): Promise<V> {
    const { group: groupOf, weight: weightOf } = this.#options;
    const group = groupOf?.(key);
    const weight = weightOf === undefined ? 1 : checkNumber("weight", weightOf(key), { min: 0, infinity: true });
    let call = this.#latest?.group === group ? this.#latest : this.#open.get(group);
    const known = call?.find(id);
    if (known !== undefined) return this.#join(known, signal);
    if (call !== undefined && call.weight + weight > this.#maxWeight) {
      this.#shut(call);
      call = undefined;
    }
    call ??= this.#begin(group);
    const load = call.add(id, key, weight, signal !== undefined);
    if (call.size >= this.#maxSize) this.#shut(call);
    this.#cache?.set(id, load);
    if (signal === undefined) return load;
    this.#claims.set(load, { call, id, place: call.places.length - 1, waiters: 0 });
    return this.#join(load, signal);
  }

  #join(load: Promise<V>, signal: AbortSignal | undefined): Promise<V> {
    const claim = this.#claims.get(load);
    if (claim !== undefined) claim.waiters += signal === undefined ? Infinity : 1; // without one, this caller stays
    if (signal === undefined) return load;
    return followUntil(load, signal, (reason) => {
      if (claim === undefined) return;
      claim.waiters -= 1;
      if (claim.waiters === 0) this.#drop(load, claim, reason);
    });
  }

  #begin(group: unknown): BatchCall<K, V> {
    const call = new BatchCall(this.#owner, group);
    this.#latest = call;
    this.#open.set(group, call); // first: the line is foreign code, and may fail it
    try {
      this.#line.add(call);
    } catch (error) {
      this.#open.delete(group);
      this.#latest = undefined;
      throw error;
    }
    return call;
  }

  /** Nothing more goes into it. */
  #shut(call: BatchCall<K, V>): void {
    if (this.#open.get(call.group) === call) this.#open.delete(call.group);
    if (this.#latest === call) this.#latest = undefined;
    this.#line.full(call); // also where it was full before: all may have left it since
  }

  #drop(load: Promise<V>, { call, id, place }: Claim<K, V>, reason: unknown): void {
    call.drop(id, place, reason);
    this.#forget(id, load);
  }

  #onError(key: K, call: BatchCall<K, V>, error: unknown): void {
    if (this.#cache === undefined) return;
    const id = this.#id(key);
    let isKept = false;
    try {
      isKept = this.#options.cacheErrors?.(error) === true;
    } finally {
      if (!isKept) this.#forget(id, call.find(id));
    }
  }

  #forget(id: unknown, load: Promise<V> | undefined): void {
    if (this.#cache?.get(id) === load) this.#cache?.delete(id);
  }
}

function atTurnEnd(): BatchSchedule {
  const batches: Batched[] = [];
  const ask = turnEnd(() => {
    for (const each of batches.splice(0)) void each.send();
  });
  return {
    add(each) {
      batches.push(each);
      ask();
    },
    full() {},
  };
}

/** On a load that may be given up, since all who wait for it may leave. */
interface Claim<K, V> {
  readonly call: BatchCall<K, V>;
  readonly id: unknown;
  readonly place: number;
  waiters: number;
}

keepModel(new Batcher(() => []));
