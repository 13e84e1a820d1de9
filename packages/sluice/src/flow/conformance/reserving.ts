/** Places that are held before there is an item. */
import { type Facts, outcome, same, thrown } from "./case.ts";

export const reserving: Facts = {
  "holds a reserved place against producers until it is filled": async ({ open }) => {
    const queue = open(2);
    const place = await queue.reserve();
    same([queue.offer("one"), queue.offer("two"), queue.stats().reserved], [true, false, 1]);
    same([place.put("reserved"), queue.stats().reserved, queue.pollBatch(9)], [true, 0, ["one", "reserved"]]);
  },

  "lets in who waits when a reserved place is given back": async ({ open }) => {
    const queue = open(1);
    const place = queue.tryReserve();
    const put = queue.put("waits");
    same([queue.tryReserve(), queue.size], [undefined, 0]);
    place?.release();
    place?.release();
    same([await put, queue.size, queue.stats().reserved], [true, 1, 0]);
  },

  "grants places and items in the order in which they were asked for": async ({ open, clock }) => {
    const queue = open(1);
    queue.offer("first");
    const log: string[] = [];
    void queue.put("second").then(() => log.push("put"));
    const place = queue.reserve().then((held) => (log.push("reserved"), held));
    void queue.put("fourth").then(() => log.push("put again"));
    same([queue.poll(), queue.poll()], ["first", "second"]);
    same([(await place).put("third"), queue.poll(), queue.poll()], [true, "third", "fourth"]);
    await clock.advance(0);
    same(log, ["put", "reserved", "put again"]);
  },

  "lets a consumer pass that finds places held, and no item": async ({ open }) => {
    const queue = open(1);
    const place = queue.tryReserve();
    const taken = queue.take();
    same([place?.put("reserved"), await taken, queue.size], [true, "reserved", 0]);
  },

  "fills a place once, and not after it was given back": async ({ open }) => {
    const queue = open(2);
    const [filled, released] = [await queue.reserve(), await queue.reserve()];
    filled.put("item");
    released.release();
    same([thrown(() => filled.put("again")), thrown(() => released.put("again"))], ["ClosedError", "ClosedError"]);
    filled.release();
    same([queue.size, queue.stats().reserved], [1, 0]);
  },

  "still takes in what a place was held for when it is closed, and ends after it": async ({ open }) => {
    const queue = open(2);
    const [place, other] = [await queue.reserve(), await queue.reserve()];
    queue.close();
    const takes = [queue.take(), queue.take()].map(outcome);
    same([place.put("promised"), queue.stats().waitingConsumers], [true, 1]);
    other.release();
    same([await Promise.all(takes), await outcome(queue.take())], [["promised", "CLOSED"], "CLOSED"]);
  },

  "takes in nothing that a place was held for once it has failed, and says so": async ({ open }) => {
    const lost: unknown[] = [];
    const queue = open(1, { onUndelivered: (item) => lost.push(item) });
    const place = await queue.reserve();
    queue.fail("gone");
    same([place.put("item"), lost, queue.poll()], [false, [], undefined]);
  },

  "refuses a place as it would refuse an item": async ({ open }) => {
    const full = open(1, { whenFull: "reject" });
    full.offer("in");
    same([await outcome(full.reserve()), full.stats().rejected], ["QUEUE_FULL", 1]);
    full.close();
    same([await outcome(full.reserve()), full.tryReserve()], ["CLOSED", undefined]);
    const waiting = open(1);
    waiting.offer("in");
    const places = [outcome(waiting.reserve()), outcome(waiting.reserve({ timeoutMs: 0 }))];
    waiting.fail("gone");
    same(await Promise.all(places), ["gone", "TIMEOUT"]);
  },

  "lets consumers have what producers bring past places that are held, in the order of both": {
    needs: "handOff",
    fact: async ({ open }) => {
      const queue = open(1);
      const place = queue.tryReserve();
      const puts = [queue.put("one"), queue.reserve(), queue.put("two")];
      same([await queue.take(), queue.poll(), queue.poll()], ["one", "two", undefined]);
      place?.release();
      same([await puts[0], await puts[2], queue.stats().reserved], [true, true, 1]);
    },
  },

  "has no place to reserve for a hand-off": {
    needs: "handOff",
    fact: async ({ open }) => {
      const queue = open(0);
      same(
        [thrown(() => queue.tryReserve()), (await outcome(queue.reserve())) instanceof RangeError],
        ["RangeError", true],
      );
    },
  },
};
