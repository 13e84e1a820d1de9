/** What becomes of an item that finds no room. */
import { QueueFullError } from "../../errors.ts";
import type { WhenFull } from "../queue-options.ts";
import { type AnyQueue, type Facts, outcome, same, thrown } from "./case.ts";

export const filling: Facts = {
  "rejects a put without room when told to": async ({ open }) => {
    const queue = open<number>(1, { whenFull: "reject" });
    await queue.put(1);
    const error = await outcome(queue.put(2).catch((reason: unknown) => Promise.reject({ reason })));
    const { reason } = error as { reason: QueueFullError };
    same([reason instanceof QueueFullError, reason.limit], [true, 1]);
    same([queue.offer(2), queue.stats().rejected, queue.size], [false, 2, 1]);
  },

  "drops the newest when told to, and says so": async ({ open }) => {
    const lost: unknown[] = [];
    const queue = open<number>(2, { whenFull: "drop-newest", onUndelivered: (item) => lost.push(item) });
    same([await queue.put(1), queue.offer(2), await queue.put(3), queue.offer(4)], [true, true, false, false]);
    same([queue.pollBatch(9), lost, queue.stats().dropped], [[1, 2], [], 2]); // whoever put knows
  },

  "drops the oldest when told to, and hands it to onUndelivered": async ({ open }) => {
    const lost: unknown[] = [];
    const onUndelivered = (item: number, reason: unknown): unknown =>
      lost.push([item, (reason as QueueFullError).code]);
    const queue = open<number>(2, { whenFull: "drop-oldest", onUndelivered });
    const puts = [queue.put(1), queue.put(2), queue.put(3)];
    same([await Promise.all(puts), queue.offer(4)], [[true, true, true], true]);
    same(
      [queue.pollBatch(9), lost],
      [
        [3, 4],
        [
          [1, "QUEUE_FULL"],
          [2, "QUEUE_FULL"],
        ],
      ],
    );
    const { accepted, taken, dropped, undelivered } = queue.stats();
    same([accepted, taken, dropped, undelivered], [4, 2, 2, 2]);
  },

  "is conflated with capacity 1 and drop-oldest: only the latest is there": async ({ open }) => {
    const queue = open<number>(1, { whenFull: "drop-oldest" });
    for (let item = 1; item <= 5; item += 1) queue.offer(item);
    same([queue.pollBatch(9), queue.offer(6), queue.poll()], [[5], true, 6]);
  },

  "asks a function for each item that finds no room, and does as it says": async ({ open }) => {
    const asked: string[] = [];
    const whenFull = (item: string): WhenFull => {
      asked.push(item);
      return item.split(" ")[0] as WhenFull;
    };
    const queue = open(1, { whenFull });
    await queue.put("first");
    same(await outcome(queue.put("reject it")), "QUEUE_FULL");
    same(await queue.put("drop-newest it"), false);
    same(await queue.put("drop-oldest for it"), true);
    const waiting = queue.put("wait for it");
    same([queue.offer("wait not"), queue.stats().waitingProducers], [false, 1]);
    same([queue.poll(), await waiting, queue.poll()], ["drop-oldest for it", true, "wait for it"]);
    same(asked, ["reject it", "drop-newest it", "drop-oldest for it", "wait for it", "wait not"]);
  },

  "loses nothing when the function throws, or answers what it can't": async ({ open }) => {
    const failure = new Error("no policy");
    const answers: Record<string, () => WhenFull> = {
      throws: () => {
        throw failure;
      },
      odd: () => "caller-runs" as WhenFull,
    };
    const queue = open(1, { whenFull: (item) => answers[item]?.() ?? "wait" });
    queue.offer("in");
    same(await outcome(queue.put("throws")), failure);
    same((await outcome(queue.put("odd"))) instanceof RangeError, true);
    same(
      [thrown(() => queue.offer("throws")), queue.stats().waitingProducers, queue.pollBatch(9)],
      ["Error", 0, ["in"]],
    );
  },

  "believes the function's answer only if room and end are still as they were": async ({ open }) => {
    const roomy: AnyQueue<string> = open(1, { whenFull: () => (roomy.poll(), "reject") });
    roomy.offer("in");
    same([await outcome(roomy.put("next")), roomy.poll()], [true, "next"]);
    const closing: AnyQueue<string> = open(1, { whenFull: () => (closing.close(), "wait") });
    closing.offer("in");
    same([await outcome(closing.put("next")), closing.stats().waitingProducers], ["CLOSED", 0]);
  },

  "ends a put whose signal aborts in the function that is asked": async ({ open }) => {
    const call = new AbortController();
    const queue = open(1, { whenFull: () => (call.abort("enough"), "wait") });
    queue.offer("in");
    same([await outcome(queue.put("out", call)), queue.stats().waitingProducers, queue.size], ["enough", 0, 1]);
  },

  "refuses a policy that it doesn't know, and to run an item as its caller": async ({ open }) => {
    for (const whenFull of ["caller-runs", "drop", 1])
      same(
        thrown(() => open(1, { whenFull: whenFull as WhenFull })),
        "RangeError",
      );
  },

  "drops what it can't hand over when told to drop": {
    needs: "handOff",
    fact: async ({ open }) => {
      for (const whenFull of ["drop-newest", "drop-oldest"] as const) {
        const queue = open<number>(0, { whenFull });
        same([await queue.put(1), queue.offer(2)], [false, false]);
        const taken = queue.take();
        same([await queue.put(3), await taken], [true, 3]);
      }
    },
  },
};
