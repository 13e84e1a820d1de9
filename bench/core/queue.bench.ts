// Against Effect's Queue and the web's TransformStream, each put and take awaited; against the floor where nothing is
// waited for, a ring; and iteration against what it stands for, a loop of takes.
import { Effect, Queue as EffectQueue } from "effect";
import { Queue } from "sluice";
import { compare, weigh } from "../harness.ts";

const CAPACITY = 1_024;
const BATCH = 256;

/** The least that could hold items in order: no waiting, no end, no ages. */
class Floor {
  readonly #slots: number[] = Array.from({ length: CAPACITY }, () => 0);
  #head = 0;
  #tail = 0;

  offer(item: number): boolean {
    if (this.#tail - this.#head === CAPACITY) return false;
    this.#slots[this.#tail & (CAPACITY - 1)] = item;
    this.#tail += 1;
    return true;
  }

  pollBatch(max: number): number[] {
    const batch: number[] = [];
    for (; this.#head < this.#tail && batch.length < max; this.#head += 1)
      batch.push(this.#slots[this.#head & (CAPACITY - 1)] as number);
    return batch;
  }
}

async function putAll(queue: Queue<number>, ops: number): Promise<void> {
  for (let item = 0; item < ops; item += 1) await queue.put(item);
  queue.close();
}

async function takeAll(queue: Queue<number>, ops: number): Promise<number> {
  let sum = 0;
  for (let taken = 0; taken < ops; taken += 1) sum += await queue.take();
  return sum;
}

// As in any program, there are others of the kind: or the compiler forgets between two runs what a queue looks like.
const bystander = new Queue<number>(CAPACITY);
bystander.offer(0);

await compare("queue", 200_000, {
  async sluice(ops) {
    const queue = new Queue<number>(CAPACITY);
    await Promise.all([putAll(queue, ops), takeAll(queue, ops)]);
  },
  effect: (ops) =>
    Effect.runPromise(
      Effect.gen(function* () {
        const queue = yield* EffectQueue.bounded<number>(CAPACITY);
        const produce = Effect.gen(function* () {
          for (let item = 0; item < ops; item += 1) yield* EffectQueue.offer(queue, item);
        });
        const consume = Effect.gen(function* () {
          let sum = 0;
          for (let taken = 0; taken < ops; taken += 1) sum += yield* EffectQueue.take(queue);
          return sum;
        });
        yield* Effect.all([produce, consume], { concurrency: "unbounded" });
      }),
    ),
  async TransformStream(ops) {
    const strategy = new CountQueuingStrategy({ highWaterMark: CAPACITY });
    const { readable, writable } = new TransformStream<number, number>({}, strategy, strategy);
    const produce = async (): Promise<void> => {
      const writer = writable.getWriter();
      for (let item = 0; item < ops; item += 1) await writer.write(item);
      await writer.close();
    };
    const consume = async (): Promise<number> => {
      const reader = readable.getReader();
      let sum = 0;
      for (let next = await reader.read(); !next.done; next = await reader.read()) sum += next.value;
      return sum;
    };
    await Promise.all([produce(), consume()]);
  },
});

await compare("queue-batch", 1_000_000, {
  async sluice(ops) {
    const queue = new Queue<number>(CAPACITY);
    for (let item = 0, taken = 0; taken < ops;) {
      while (item < ops && queue.offer(item)) item += 1;
      taken += (await queue.takeBatch(BATCH)).length;
    }
  },
  async floor(ops) {
    const ring = new Floor();
    for (let item = 0, taken = 0; taken < ops;) {
      while (item < ops && ring.offer(item)) item += 1;
      taken += (await Promise.resolve(ring.pollBatch(BATCH))).length;
    }
  },
});

await compare("queue-iterate", 1_000_000, {
  async sluice(ops) {
    const queue = new Queue<number>(CAPACITY);
    const consume = async (): Promise<number> => {
      let sum = 0;
      for await (const item of queue) sum += item;
      return sum;
    };
    await Promise.all([putAll(queue, ops), consume()]);
  },
  async take(ops) {
    const queue = new Queue<number>(CAPACITY);
    await Promise.all([putAll(queue, ops), takeAll(queue, ops)]);
  },
});

const WAITING = 100_000;

await weigh("queue-memory", WAITING, {
  sluice(count) {
    const queue = new Queue<number>(1);
    for (let item = 0; item <= count; item += 1) void queue.put(item);
    return queue;
  },
  effect(count) {
    const queue = Effect.runSync(EffectQueue.bounded<number>(1));
    for (let item = 0; item <= count; item += 1) Effect.runFork(EffectQueue.offer(queue, item));
    return queue;
  },
  floor(count) {
    const waiting: { readonly item: number; readonly resolve: (isIn: boolean) => void }[] = [];
    for (let item = 0; item < count; item += 1)
      void new Promise<boolean>((resolve) => void waiting.push({ item, resolve }));
    return waiting;
  },
});

await weigh("queue-item", WAITING, {
  sluice(count) {
    const queue = new Queue<number>(count);
    for (let item = 0; item < count; item += 1) queue.offer(item);
    return queue;
  },
  effect(count) {
    const queue = Effect.runSync(EffectQueue.bounded<number>(count));
    for (let item = 0; item < count; item += 1) EffectQueue.offerUnsafe(queue, item);
    return queue;
  },
  floor: (count) => Array.from({ length: count }, (_, item) => item),
});
