/**
 * A number for each of very many keys: hashes and numbers side by side in one buffer, in place of an object and a key for
 * each. It takes 16 B a slot, 21 to 32 B a key. With very many, most of the time is spent waiting for memory, and a slot
 * is one access.
 *
 * Keys are told apart by 64 bits of hash. That two of a million share theirs has odds of one in 37 million, for keys that
 * nobody chose with the seed in hand; they then share one number.
 */
import type { Random } from "../internal/random.ts";

/** Whose rate it is: a string, or an integer. */
export type RateKey = string | number;

const MIN_SLOTS = 16;
/** Full beyond this, it grows by half; with less than an eighth in use, it shrinks. */
const MAX_LOAD = 0.75;
const MIN_LOAD = 0.125;

export class RateTable {
  // I1  slot i is words[4 * i] and the next for the hash, values[2 * i + 1] for the number; it is in use if its first word
  //     is not 0
  // I2  from the slot where a hash belongs to the one where it is, all are in use
  /** Keys in the table. */
  size = 0;
  /** Places for keys, of 16 B each. */
  slots: number = MIN_SLOTS;
  #values = new Float64Array(2 * MIN_SLOTS);
  #words = new Uint32Array(this.#values.buffer);
  #hand = 0;
  /** Of the key that was looked for last. */
  #low = 0;
  #high = 0;
  readonly #seed: number;

  constructor(random: Random) {
    this.#seed = Math.floor(random() * 2 ** 32);
  }

  /** Where the key is, until the table changes; -1 if it isn't there. */
  find(key: RateKey): number {
    this.#hash(key);
    const words = this.#words;
    const low = this.#low;
    for (let slot = this.#home(low); ; slot = this.#after(slot)) {
      const here = words[4 * slot] as number;
      if (here === low && words[4 * slot + 1] === this.#high) return slot;
      if (here === 0) return -1;
    }
  }

  get(slot: number): number {
    return this.#values[2 * slot + 1] as number;
  }

  set(slot: number, value: number): void {
    this.#values[2 * slot + 1] = value;
  }

  /** For the key that was looked for last, and not found. */
  add(value: number): void {
    if (this.size + 1 > this.slots * MAX_LOAD) this.#resize(this.slots * 1.5);
    this.#put(this.#low, this.#high, value);
    this.size += 1;
  }

  /** Those behind it that could not be nearer to where they belong move up. */
  remove(slot: number): void {
    const [words, slots] = [this.#words, this.slots];
    let gap = slot;
    for (let next = this.#after(gap); words[4 * next] !== 0; next = this.#after(next)) {
      const strayed = (next - this.#home(words[4 * next] as number) + slots) % slots;
      if (strayed < (next - gap + slots) % slots) continue;
      this.#values.copyWithin(2 * gap, 2 * next, 2 * next + 2);
      gap = next;
    }
    words[4 * gap] = 0;
    this.size -= 1;
  }

  /** The next slot in use of the `looks` that are looked at, round and round over all calls; -1 if none is. */
  nextInUse(looks: number): number {
    for (let look = 0; look < looks; look += 1) {
      this.#hand = this.#after(this.#hand);
      if (this.#hand === 0 && this.slots > MIN_SLOTS && this.size < this.slots * MIN_LOAD)
        this.#resize(Math.max(MIN_SLOTS, this.slots / 4));
      if (this.#words[4 * this.#hand] !== 0) return this.#hand;
    }
    return -1;
  }

  /** Every number by `change`. */
  map(change: (value: number) => number): void {
    for (let slot = 0; slot < this.slots; slot += 1) this.set(slot, change(this.get(slot)));
  }

  #after(slot: number): number {
    return slot + 1 === this.slots ? 0 : slot + 1;
  }

  /** In the order of the hashes, so that a resize goes through memory once from front to end. */
  #home(low: number): number {
    return Math.floor((low / 2 ** 32) * this.slots);
  }

  #put(low: number, high: number, value: number): void {
    const words = this.#words;
    let slot = this.#home(low);
    while (words[4 * slot] !== 0) slot = this.#after(slot);
    words[4 * slot] = low;
    words[4 * slot + 1] = high;
    this.set(slot, value);
  }

  #resize(slots: number): void {
    const [words, values] = [this.#words, this.#values];
    this.slots = Math.ceil(slots);
    this.#values = new Float64Array(2 * this.slots);
    this.#words = new Uint32Array(this.#values.buffer);
    this.#hand = 0;
    for (let at = 0; at < values.length; at += 2) {
      const low = words[2 * at] as number;
      if (low !== 0) this.#put(low, words[2 * at + 1] as number, values[at + 1] as number);
    }
    (values.buffer as { transfer?(bytes: number): unknown }).transfer?.(0); // or collecting it takes longer than all else
  }

  /** Two lanes of a multiplicative hash, mixed as in MurmurHash3. */
  #hash(key: RateKey): void {
    let low = this.#seed;
    let high = ~low;
    if (typeof key === "string") {
      for (let index = 0; index < key.length; index += 1) {
        const code = key.charCodeAt(index);
        low = Math.imul(low ^ code, 0x9e3779b1);
        high = Math.imul(high ^ code, 0x85ebca6b);
        high ^= high >>> 13;
      }
    } else {
      low = Math.imul(low ^ (key | 0), 0xc2b2ae35);
      high = Math.imul(high ^ Math.floor(key / 2 ** 32), 0x27d4eb2f) ^ low;
    }
    low = mix(low ^ (high >>> 16));
    this.#low = low === 0 ? 1 : low; // (I1)
    this.#high = mix(high ^ low);
  }
}

function mix(hash: number): number {
  const half = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  const whole = Math.imul(half ^ (half >>> 13), 0xc2b2ae35);
  return (whole ^ (whole >>> 16)) >>> 0;
}
