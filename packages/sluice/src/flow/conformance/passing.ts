/** How items pass from producers to consumers. */
import { type Facts, names, outcome, same, thrown } from "./case.ts";

export const passing: Facts = {
  "gives items in the order in which they came": async ({ open }) => {
    const queue = open(3);
    for (const item of names(3)) queue.offer(item);
    same([queue.poll(), await queue.take(), await queue.takeBatch(9)], ["item 1", "item 2", ["item 3"]]);
  },

  "holds no more than its capacity, and lets in a waiting producer for each item that leaves": async ({ open }) => {
    const queue = open(2);
    const puts = names(4).map((item) => queue.put(item));
    same([queue.size, queue.stats().waitingProducers, queue.offer("late")], [2, 2, false]);
    same([queue.poll(), queue.size, queue.stats().waitingProducers], ["item 1", 2, 1]);
    same(await Promise.all(puts.slice(0, 3)), [true, true, true]);
    same([queue.pollBatch(9), queue.poll(), queue.size], [["item 2", "item 3", "item 4"], undefined, 0]);
    same(await puts[3], true);
  },

  "hands an item to the consumer that waits longest, past every newcomer": async ({ open }) => {
    const queue = open<number>(3);
    const takes = [queue.take(), queue.take()];
    same([queue.offer(1), queue.poll(), queue.size], [true, undefined, 0]);
    const late = queue.take();
    same([queue.offer(2), queue.offer(3)], [true, true]);
    same(await Promise.all([...takes, late]), [1, 2, 3]);
  },

  "lets no newcomer in before a producer that waits": async ({ open }) => {
    const queue = open(1);
    queue.offer("in");
    const put = queue.put("waits");
    queue.poll();
    same([queue.offer("newcomer"), await put, queue.poll(), queue.poll()], [false, true, "waits", undefined]);
  },

  "carries undefined and null as items": async ({ open }) => {
    const queue = open<undefined | null>(2);
    await queue.put(undefined);
    await queue.put(null);
    const waiting = queue.put(undefined);
    same([queue.size, queue.poll(), await waiting, queue.size], [2, undefined, true, 2]);
    same([await queue.take(), await queue.take(), queue.size], [null, undefined, 0]);
  },

  "keeps equal items apart": async ({ open }) => {
    const queue = open(4);
    for (let copy = 0; copy < 4; copy += 1) queue.offer("same");
    same(await queue.takeBatch(9), ["same", "same", "same", "same"]);
  },

  "shows by peek what is next, and leaves it in": async ({ open }) => {
    const queue = open(2);
    same(queue.peek(), undefined);
    for (const item of names(2)) queue.offer(item);
    same(
      [queue.peek(), queue.peek(), queue.size, queue.poll(), queue.peek()],
      ["item 1", "item 1", 2, "item 1", "item 2"],
    );
  },

  "settles put and take in the same number of turns whether or not they waited": async ({ open }) => {
    const [free, full] = [open<number>(1), open<number>(1)];
    const log: string[] = [];
    const note = (what: string) => (): unknown => log.push(what);
    full.offer(1);
    const puts = [full.put(2).then(note("waited to put")), (full.poll(), free.put(1).then(note("put")))];
    await Promise.all(puts);
    full.poll();
    const takes = [full.take().then(note("waited to take")), (full.offer(3), free.take().then(note("took")))];
    await Promise.all(takes);
    same(log, ["waited to put", "put", "waited to take", "took"]);
  },

  "never waits and changes nothing when an offer or a poll finds no place or item": async ({ open }) => {
    const queue = open(1);
    same([queue.poll(), queue.pollBatch(3), queue.size], [undefined, [], 0]);
    queue.offer("in");
    same([queue.offer("out"), queue.stats().waitingProducers, queue.pollBatch(3)], [false, 0, ["in"]]);
  },

  "tries a put or a take with timeoutMs 0 once": async ({ open }) => {
    const queue = open(1);
    same(await outcome(queue.take({ timeoutMs: 0 })), "TIMEOUT");
    same(await outcome(queue.put("in", { timeoutMs: 0 })), true);
    same(await outcome(queue.put("out", { timeoutMs: 0 })), "TIMEOUT");
    same([await outcome(queue.take({ timeoutMs: 0 })), queue.size], ["in", 0]);
  },

  "ends a wait after timeoutMs, and keeps nothing of it": async ({ open, clock }) => {
    const queue = open(1);
    const taken = outcome(queue.take({ timeoutMs: 10 }));
    await clock.advance(10);
    queue.offer("in");
    const put = outcome(queue.put("late", { timeoutMs: 10 }));
    await clock.advance(10);
    same([await taken, await put, queue.pollBatch(9), clock.timers], ["TIMEOUT", "TIMEOUT", ["in"], 0]);
  },

  "takes a batch of what is there, the items of waiting producers included": async ({ open }) => {
    const queue = open<number>(2);
    for (let item = 0; item < 5; item += 1) void queue.put(item);
    same([await queue.takeBatch(4), await queue.takeBatch(4), queue.size], [[0, 1, 2, 3], [4], 0]);
  },

  "gives a batch maxWaitMs from its first item to fill, and no longer": async ({ open, clock }) => {
    const queue = open<number>(10);
    const batch = queue.takeBatch(3, { maxWaitMs: 100 });
    await clock.advance(500); // waiting for the first costs nothing of it
    queue.offer(1);
    await clock.advance(60);
    queue.offer(2);
    await clock.advance(39);
    same(queue.stats().waitingConsumers, 1);
    await clock.advance(1);
    same([await batch, clock.timers, queue.stats().waitingConsumers], [[1, 2], 0, 0]);
  },

  "ends a batch the moment it is full": async ({ open, clock }) => {
    const queue = open<number>(10);
    const batch = queue.takeBatch(3, { maxWaitMs: Infinity });
    for (let item = 1; item <= 4; item += 1) queue.offer(item);
    same([await batch, queue.size, clock.timers], [[1, 2, 3], 1, 0]);
  },

  "gives what a batch has when its signal aborts or its queue ends": async ({ open, clock }) => {
    for (const end of ["abort", "close", "fail"] as const) {
      const queue = open<number>(10);
      const call = new AbortController();
      const batch = queue.takeBatch(3, { maxWaitMs: 100, timeoutMs: 50, signal: call.signal });
      queue.offer(1);
      await clock.advance(60); // timeoutMs is about the first
      if (end === "abort") call.abort();
      else if (end === "close") queue.close();
      else queue.fail(new Error("gone"));
      same([await batch, clock.timers, queue.stats().waitingConsumers], [[1], 0, 0]);
    }
  },

  "refuses a max that is no integer >= 1, and takes nothing": async ({ open }) => {
    const queue = open(1);
    queue.offer("in");
    for (const max of [0, -1, 1.5, Number.NaN]) {
      same(
        [thrown(() => queue.pollBatch(max)), (await outcome(queue.takeBatch(max))) instanceof RangeError],
        ["RangeError", true],
      );
    }
    same((await outcome(queue.takeBatch(1, { maxWaitMs: -1 }))) instanceof RangeError, true);
    same(queue.size, 1);
  },

  "hands over without room: each put meets a take, in the order of both": {
    needs: "handOff",
    fact: async ({ open }) => {
      const queue = open(0);
      const puts = names(2).map((item) => queue.put(item));
      same([queue.size, queue.stats().waitingProducers, queue.peek()], [0, 2, undefined]);
      same([await queue.take(), await puts[0], queue.stats().waitingProducers], ["item 1", true, 1]);
      same([queue.poll(), await puts[1], queue.poll()], ["item 2", true, undefined]);
      const takes = [queue.take(), queue.take()];
      same([queue.offer("item 3"), await queue.put("item 4"), queue.offer("nobody waits")], [true, true, false]);
      same(await Promise.all(takes), ["item 3", "item 4"]);
    },
  },

  "takes a batch from producers that wait to hand over": {
    needs: "handOff",
    fact: async ({ open, clock }) => {
      const queue = open(0);
      const puts = names(3).map((item) => queue.put(item));
      same(await queue.takeBatch(2), ["item 1", "item 2"]);
      await clock.advance(30);
      same([queue.oldestAgeMs, queue.pollBatch(9)], [30, ["item 3"]]);
      same(await Promise.all(puts), [true, true, true]);
    },
  },

  "refuses a capacity of 0": {
    insteadOf: "handOff",
    fact: async ({ open }) =>
      same(
        thrown(() => open(0)),
        "RangeError",
      ),
  },

  "refuses a capacity that is no integer": async ({ open }) => {
    for (const capacity of [-1, 0.5, Infinity, Number.NaN])
      same(
        thrown(() => open(capacity)),
        "RangeError",
      );
    same(
      thrown(() => open("1" as unknown as number)),
      "TypeError",
    );
  },
};
