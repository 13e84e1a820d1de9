// Against the floor: a ring that is given its length at once and keeps what has left.
import { compare, weigh } from "../../../../bench/harness.ts";
import { Ring } from "./ring.ts";

class Floor<T> {
  readonly #slots: T[] = [];
  readonly #mask: number;
  #head = 0;
  #tail = 0;

  constructor(length: number, empty: T) {
    for (let slot = 0; slot < length; slot += 1) this.#slots.push(empty);
    this.#mask = length - 1;
  }

  push(item: T): void {
    this.#slots[this.#tail & this.#mask] = item;
    this.#tail += 1;
  }

  shift(): T | undefined {
    const item = this.#slots[this.#head & this.#mask];
    this.#head += 1;
    return item;
  }
}

for (const depth of [15, 100_000]) {
  await compare(`ring-${depth}`, 4_000_000, {
    sluice(ops) {
      const ring = new Ring<number>();
      for (let item = 0; item < depth; item += 1) ring.push(item);
      let sum = 0;
      for (let item = 0; item < ops; item += 1) {
        ring.push(item);
        sum += ring.shift() ?? 0;
      }
      return sum;
    },
    floor(ops) {
      const ring = new Floor(2 ** Math.ceil(Math.log2(depth + 1)), 0);
      for (let item = 0; item < depth; item += 1) ring.push(item);
      let sum = 0;
      for (let item = 0; item < ops; item += 1) {
        ring.push(item);
        sum += ring.shift() ?? 0;
      }
      return sum;
    },
  });
}

await compare("ring-burst", 1_000_000, {
  sluice(ops) {
    const ring = new Ring<number>();
    for (let item = 0; item < ops; item += 1) ring.push(item);
    for (let item = 0; item < ops; item += 1) ring.shift();
    return ring;
  },
  floor(ops) {
    const ring = new Floor(2 ** Math.ceil(Math.log2(ops)), 0);
    for (let item = 0; item < ops; item += 1) ring.push(item);
    for (let item = 0; item < ops; item += 1) ring.shift();
    return ring;
  },
});

await weigh("ring-item", 100_000, {
  sluice(count) {
    const ring = new Ring<number>();
    for (let item = 0; item < count; item += 1) ring.push(item);
    return ring;
  },
  floor(count) {
    const ring = new Floor(2 ** Math.ceil(Math.log2(count)), 0);
    for (let item = 0; item < count; item += 1) ring.push(item);
    return ring;
  },
});
