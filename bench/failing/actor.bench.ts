// A producer that waits only for room, and a state that one message at a time adds to. The floor: a ring and a loop that
// sleeps while it is empty, which knows neither senders nor failures nor an end. The queue: ours, with `consume` for a loop.
import { Actor, Queue } from "sluice";
import { compare } from "../harness.ts";

const CAPACITY = 1_024;

/** As much as any mailbox needs, and no more. */
class Floor {
  readonly #slots: number[] = Array.from({ length: CAPACITY }, () => 0);
  #head = 0;
  #tail = 0;
  #onRoom: (() => void) | undefined;
  #onItem: (() => void) | undefined;

  offer(item: number): boolean {
    if (this.#tail - this.#head === CAPACITY) return false;
    this.#slots[this.#tail & (CAPACITY - 1)] = item;
    this.#tail += 1;
    this.#onItem?.();
    this.#onItem = undefined;
    return true;
  }

  room(): Promise<void> {
    return new Promise((resolve) => void (this.#onRoom = resolve));
  }

  async consume(ops: number, handle: (item: number) => unknown): Promise<void> {
    for (let taken = 0; taken < ops; taken += 1) {
      while (this.#tail === this.#head) await new Promise<void>((resolve) => void (this.#onItem = resolve));
      const item = this.#slots[this.#head & (CAPACITY - 1)] as number;
      this.#head += 1;
      this.#onRoom?.();
      this.#onRoom = undefined;
      await handle(item);
    }
  }
}

for (const [bench, isAsync] of [
  ["actor", false],
  ["actor-async", true],
] as const) {
  const pause = Promise.resolve();
  await compare(bench, 300_000, {
    async sluice(ops) {
      let sum = 0;
      const add = (item: number): void => void (sum += item);
      const addLater = (item: number): Promise<void> => pause.then(() => add(item));
      const actor = new Actor<number>(CAPACITY, () => (isAsync ? addLater : add));
      for (let item = 0; item < ops; item += 1) if (!actor.tryTell(item)) await actor.tell(item);
      await actor.drain();
      return sum;
    },
    async floor(ops) {
      let sum = 0;
      const add = (item: number): void => void (sum += item);
      const addLater = (item: number): Promise<void> => pause.then(() => add(item));
      const ring = new Floor();
      const loop = ring.consume(ops, isAsync ? addLater : add);
      for (let item = 0; item < ops; item += 1) while (!ring.offer(item)) await ring.room();
      await loop;
      return sum;
    },
    async queue(ops) {
      let sum = 0;
      const add = (item: number): void => void (sum += item);
      const addLater = (item: number): Promise<void> => pause.then(() => add(item));
      const queue = new Queue<number>(CAPACITY);
      const loop = queue.consume(isAsync ? addLater : add);
      for (let item = 0; item < ops; item += 1) if (!queue.offer(item)) await queue.put(item);
      queue.close();
      await loop;
      return sum;
    },
  });
}
