import { expectTypeOf } from "vitest";
import { Queue } from "./queue.ts";

declare const queue: Queue<string>;

expectTypeOf(queue.put("item")).toEqualTypeOf<Promise<boolean>>();
expectTypeOf(queue.take()).toEqualTypeOf<Promise<string>>();
expectTypeOf(queue.takeBatch(5, { maxWaitMs: 10 })).toEqualTypeOf<Promise<string[]>>();
expectTypeOf(queue.offer("item")).toEqualTypeOf<boolean>();
expectTypeOf(queue.poll()).toEqualTypeOf<string | undefined>();
expectTypeOf(queue.pollBatch(5)).toEqualTypeOf<string[]>();
for await (const item of queue) expectTypeOf(item).toEqualTypeOf<string>();
// @ts-expect-error there is no queue without a bound
void new Queue<string>();
void new Queue<string>(1, { whenFull: (item) => (item.length > 3 ? "wait" : "drop-oldest") });
// @ts-expect-error an item is nothing to run
void new Queue<string>(1, { whenFull: "caller-runs" });
// @ts-expect-error an item of another type
queue.offer(1);
