// Against the floor: a ring of fixed length that is awaited only when it is full or empty, and knows neither signals nor
// timeouts nor ages nor an end; and against the same awaited at every step, which is what our promise forms are.
import { compare } from "../../../../bench/harness.ts";
import { Queue } from "./queue.ts";

const CAPACITY = 1_024;

class Floor {
  readonly #slots: number[] = Array.from({ length: CAPACITY }, () => 0);
  #head = 0;
  #tail = 0;
  #producer: (() => void) | undefined;
  #consumer: (() => void) | undefined;

  offer(item: number): boolean {
    if (this.#tail - this.#head === CAPACITY) return false;
    this.#slots[this.#tail & (CAPACITY - 1)] = item;
    this.#tail += 1;
    const consumer = this.#consumer;
    this.#consumer = undefined;
    consumer?.();
    return true;
  }

  poll(): number | undefined {
    if (this.#tail === this.#head) return undefined;
    const item = this.#slots[this.#head & (CAPACITY - 1)];
    this.#head += 1;
    const producer = this.#producer;
    this.#producer = undefined;
    producer?.();
    return item;
  }

  room(): Promise<void> {
    return new Promise((resolve) => void (this.#producer = resolve));
  }

  item(): Promise<void> {
    return new Promise((resolve) => void (this.#consumer = resolve));
  }
}

async function produceIntoFloor(floor: Floor, ops: number): Promise<void> {
  for (let item = 0; item < ops; item += 1) while (!floor.offer(item)) await floor.room();
}

async function consumeFromFloor(floor: Floor, ops: number): Promise<number> {
  let sum = 0;
  for (let taken = 0; taken < ops; taken += 1) {
    let item = floor.poll();
    for (; item === undefined; item = floor.poll()) await floor.item();
    sum += item;
  }
  return sum;
}

async function produce(queue: Queue<number>, ops: number): Promise<void> {
  for (let item = 0; item < ops; item += 1) await queue.put(item);
  queue.close();
}

const floor = async (ops: number): Promise<void> => {
  const ring = new Floor();
  await Promise.all([produceIntoFloor(ring, ops), consumeFromFloor(ring, ops)]);
};

await compare("queue-put-take", 500_000, {
  async sluice(ops) {
    const queue = new Queue<number>(CAPACITY);
    const consume = async (): Promise<number> => {
      let sum = 0;
      for (let taken = 0; taken < ops; taken += 1) sum += await queue.take();
      return sum;
    };
    await Promise.all([produce(queue, ops), consume()]);
  },
  floor,
});

await compare("queue-offer-poll", 2_000_000, {
  sluice(ops) {
    const queue = new Queue<number>(CAPACITY);
    let sum = 0;
    for (let item = 0; item < ops; item += 1) {
      queue.offer(item);
      sum += queue.poll() ?? 0;
    }
    return sum;
  },
  floor(ops) {
    const ring = new Floor();
    let sum = 0;
    for (let item = 0; item < ops; item += 1) {
      ring.offer(item);
      sum += ring.poll() ?? 0;
    }
    return sum;
  },
});
