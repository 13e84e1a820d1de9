// What an ask costs, and an actor that has nothing to do. The floor of an ask: a chain of promises, which is all that a
// state needs to handle one call at a time, and which knows neither bounds nor aborts nor failures of its own. What a tell
// costs is in `bench/failing`.
import { compare, weigh } from "../../../../bench/harness.ts";
import type { Setup } from "./actor-options.ts";
import { Actor } from "./actor.ts";
import { byValue } from "./by-value.ts";

await compare("actor-ask", 100_000, {
  async Actor(ops) {
    const actor = new Actor<number, number>(1_024, () => (item) => item + 1);
    let sum = 0;
    for (let item = 0; item < ops; item += 1) sum += await actor.ask(item);
    return sum;
  },
  async floor(ops) {
    let tail = Promise.resolve(0);
    let sum = 0;
    for (let item = 0; item < ops; item += 1) {
      tail = tail.then(() => item + 1);
      sum += await tail;
    }
    return sum;
  },
});

interface Order {
  readonly id: number;
  readonly lines: readonly { readonly sku: string; readonly count: number }[];
}

async function sell(actor: Actor<Order, number>, ops: number): Promise<void> {
  const lines = Array.from({ length: 8 }, (_, count) => ({ sku: `sku-${count}`, count }));
  for (let id = 0; id < ops; id += 1) if (!actor.tryTell({ id, lines })) await actor.tell({ id, lines });
  await actor.drain();
}

const setup: Setup<Order, number> = () => (order) => order.id;

await compare("actor-by-value", 20_000, {
  byValue: (ops) => sell(new Actor(64, setup, { copy: byValue }), ops),
  structuredClone: (ops) =>
    sell(new Actor(64, setup, { copy: (value) => ({ copy: structuredClone(value), bytes: 0 }) }), ops),
  floor: (ops) => sell(new Actor(64, setup), ops),
});

await weigh("actor-memory", 10_000, {
  Actor: (count) => Array.from({ length: count }, () => new Actor<number>(16, () => () => {})),
  floor: (count) => Array.from({ length: count }, () => ({ mailbox: [], receive: undefined })),
});
