// Against the floor: a list for each of four priorities, asked from the highest down, without ages or waiting.
import { compare, weigh } from "../../../../bench/harness.ts";
import { PriorityQueue } from "./priority-queue.ts";

const PRIORITIES = 4;
const DEPTH = 1_000;

class Floor {
  readonly #lists: number[][] = Array.from({ length: PRIORITIES }, () => []);
  readonly #heads: number[] = Array.from({ length: PRIORITIES }, () => 0);

  offer(item: number, priority: number): void {
    this.#lists[priority]?.push(item);
  }

  poll(): number | undefined {
    for (let priority = PRIORITIES - 1; priority >= 0; priority -= 1) {
      const [list = [], head = 0] = [this.#lists[priority], this.#heads[priority]];
      if (head === list.length) continue;
      this.#heads[priority] = head + 1;
      return list[head];
    }
    return undefined;
  }
}

await compare("priority-queue-offer-poll", 300_000, {
  sluice(ops) {
    const queue = new PriorityQueue<number>(DEPTH + 1);
    for (let item = 0; item < DEPTH; item += 1) queue.offer(item, { priority: item % PRIORITIES });
    let sum = 0;
    for (let item = 0; item < ops; item += 1) {
      queue.offer(item, { priority: item % PRIORITIES });
      sum += queue.poll() ?? 0;
    }
    return sum;
  },
  floor(ops) {
    const lists = new Floor();
    for (let item = 0; item < DEPTH; item += 1) lists.offer(item, item % PRIORITIES);
    let sum = 0;
    for (let item = 0; item < ops; item += 1) {
      lists.offer(item, item % PRIORITIES);
      sum += lists.poll() ?? 0;
    }
    return sum;
  },
});

await weigh("priority-queue-item", 100_000, {
  sluice(count) {
    const queue = new PriorityQueue<number>(count);
    for (let item = 0; item < count; item += 1) queue.offer(item, { priority: item % PRIORITIES });
    return queue;
  },
  floor: (count) => Array.from({ length: count }, (_, item) => item),
});
