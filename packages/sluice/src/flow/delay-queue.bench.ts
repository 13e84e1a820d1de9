// Against the floor: a timer of the runtime for each item.
import { compare, weigh } from "../../../../bench/harness.ts";
import { DelayQueue } from "./delay-queue.ts";

const HOUR_MS = 3_600_000;
const nothing = (): void => {};

await compare("delay-queue-put-remove-all", 100_000, {
  sluice(ops) {
    const queue = new DelayQueue<number>(ops, { onUndelivered: nothing });
    for (let item = 0; item < ops; item += 1) queue.offer(item, { delayMs: HOUR_MS + (item % 1_000) });
    queue.fail("done");
  },
  floor(ops) {
    const timers: NodeJS.Timeout[] = [];
    for (let item = 0; item < ops; item += 1) timers.push(setTimeout(nothing, HOUR_MS + (item % 1_000)));
    for (const timer of timers) clearTimeout(timer);
  },
});

await weigh("delay-queue-item", 100_000, {
  sluice(count) {
    const queue = new DelayQueue<number>(count);
    for (let item = 0; item < count; item += 1) queue.offer(item, { delayMs: HOUR_MS + (item % 1_000) });
    return queue;
  },
  floor(count) {
    const timers: NodeJS.Timeout[] = [];
    for (let item = 0; item < count; item += 1) timers.push(setTimeout(nothing, HOUR_MS + (item % 1_000)).unref());
    return timers;
  },
});
