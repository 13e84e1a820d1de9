/** How a queue ends. */
import { type Facts, names, outcome, same, thrown } from "./case.ts";

export const ending: Facts = {
  "loses no accepted item when it is closed, and tells each waiting producer": async ({ open }) => {
    const queue = open(2);
    const puts = names(4).map((item) => outcome(queue.put(item)));
    queue.close();
    const got: string[] = [];
    for await (const item of queue) got.push(item);
    same(
      [got, await Promise.all(puts)],
      [
        ["item 1", "item 2"],
        [true, true, "CLOSED", "CLOSED"],
      ],
    );
    same(
      [await outcome(queue.take()), await outcome(queue.put("late")), queue.offer("late")],
      ["CLOSED", "CLOSED", false],
    );
    same(queue.stats().rejected, 4);
  },

  "ends the wait of consumers when it is closed, and closes once": async ({ open }) => {
    const queue = open(1);
    const takes = [outcome(queue.take()), outcome(queue.takeBatch(2))];
    queue.close();
    queue.close();
    same([await Promise.all(takes), queue.closed], [["CLOSED", "CLOSED"], true]);
  },

  "gives the error of fail to all at once, and the first error stays": async ({ open }) => {
    const queue = open<number>(2);
    const puts = [1, 2, 3].map((item) => outcome(queue.put(item)));
    const failure = new Error("consumer gone");
    queue.fail(failure);
    queue.fail(new Error("second"));
    queue.close();
    same(await Promise.all(puts), [true, true, failure]);
    const calls = [queue.put(4), queue.take(), queue.takeBatch(2), queue.reserve()].map(outcome);
    same([await Promise.all(calls), queue.offer(5), queue.closed], [[failure, failure, failure, failure], false, true]);
  },

  "leaves what nobody took to poll when it fails without onUndelivered": async ({ open }) => {
    const queue = open<number>(2);
    queue.offer(1);
    queue.offer(2);
    queue.fail("gone");
    same([queue.peek(), queue.poll(), queue.pollBatch(9), queue.poll()], [1, 1, [2], undefined]);
  },

  "hands what nobody took to onUndelivered when it fails, with the error": async ({ open }) => {
    const lost: unknown[] = [];
    const queue = open<number>(2, { onUndelivered: (...loss) => lost.push(loss) });
    const puts = [1, 2, 3].map((item) => outcome(queue.put(item)));
    queue.fail("gone");
    same(
      [lost, queue.size, queue.poll(), await puts[2]],
      [
        [
          [1, "gone"],
          [2, "gone"],
        ],
        0,
        undefined,
        "gone",
      ],
    );
    const { accepted, taken, undelivered } = queue.stats();
    same([accepted, taken, undelivered], [2, 0, 2]);
  },

  "refuses an onUndelivered that is no function": async ({ open }) =>
    same(
      thrown(() => open(1, { onUndelivered: 5 as never })),
      "TypeError",
    ),

  "fails with what is in after it was closed": async ({ open }) => {
    const queue = open<number>(2);
    queue.offer(1);
    queue.close();
    queue.fail("gone");
    same([await outcome(queue.take()), await outcome(queue.put(2)), queue.poll()], ["gone", "gone", 1]);
  },

  "iterates until it is closed and empty": async ({ open, clock }) => {
    const queue = open(2);
    const got: string[] = [];
    const consumer = (async () => {
      for await (const item of queue) got.push(item);
    })();
    for (const item of names(5)) await queue.put(item);
    await clock.advance(0);
    queue.close();
    await consumer;
    same(got, names(5));
  },

  "ends iteration for whoever waits when it is closed, and with the error when it fails": async ({ open, clock }) => {
    const [closed, failed] = [open(1), open(1)];
    const ends = [closed, failed].map((queue) => outcome(queue[Symbol.asyncIterator]().next()));
    await clock.advance(0);
    closed.close();
    failed.fail("gone");
    same(await Promise.all(ends), [{ done: true, value: undefined }, "gone"]);
    same(await closed[Symbol.asyncIterator]().next(), { done: true, value: undefined });
  },

  "leaves no waiter and loses no item when iteration is broken off": async ({ open }) => {
    const queue = open(3);
    for (const item of names(3)) queue.offer(item);
    for await (const item of queue[Symbol.asyncIterator]()) if (item === "item 2") break;
    const iterator = queue[Symbol.asyncIterator]();
    same(await iterator.next(), { done: false, value: "item 3" });
    const next = iterator.next();
    await iterator.return?.();
    queue.offer("left");
    same(
      [await next, await iterator.next()],
      [
        { done: true, value: undefined },
        { done: true, value: undefined },
      ],
    );
    same([queue.poll(), queue.stats().waitingConsumers], ["left", 0]);
  },
};
