/** Workers of the queue's own. */
import { type Facts, names, outcome, same, thrown } from "./case.ts";

export const consuming: Facts = {
  "calls fn for each item with no more than so many workers, until it is closed and empty": async ({ open, clock }) => {
    const queue = open(10);
    for (const item of names(5)) queue.offer(item);
    const [running, ends]: [string[], (() => void)[]] = [[], []];
    const over = queue.consume((item) => (running.push(item), new Promise<void>((end) => void ends.push(end))), {
      workers: 2,
    });
    await clock.advance(0);
    same([running, queue.stats().consumers, queue.size], [["item 1", "item 2"], 2, 3]);
    queue.close();
    for (let item = 0; item < 5; item += 1) {
      ends[item]?.();
      await clock.advance(0);
    }
    same([await outcome(over), running, queue.stats().consumers], [undefined, names(5), 0]);
  },

  "fails with the error of fn, so that producers learn of the death, once all calls have ended": async ({
    open,
    clock,
  }) => {
    const queue = open(1);
    const [failure, signals]: [Error, (AbortSignal | undefined)[]] = [new Error("bad item"), []];
    let end: (() => void) | undefined;
    const fn = (item: string, { signal }: { signal: AbortSignal | undefined }): unknown => {
      signals.push(signal);
      if (item === "bad") throw failure;
      return new Promise<void>((resolve) => void (end = resolve));
    };
    let isOver = false;
    const over = outcome(queue.consume(fn, { workers: 2 })).finally(() => (isOver = true));
    await queue.put("slow");
    await queue.put("bad");
    const stuck = [queue.put("next"), queue.put("after")].map(outcome);
    await clock.advance(0);
    same([signals.map((signal) => signal?.aborted), isOver, queue.stats().consumers], [[true, true], false, 1]);
    same([await stuck[1], await outcome(queue.put("late"))], [failure, failure]);
    end?.();
    same([await over, queue.stats().consumers], [failure, 0]);
  },

  "stops quietly when it is told to: what was taken gets to its end undisturbed, and the rest stays": async ({
    open,
    clock,
  }) => {
    const queue = open(4);
    const [stop, call] = [new AbortController(), new AbortController()];
    const got: string[] = [];
    const [signals, ends]: [(AbortSignal | undefined)[], (() => void)[]] = [[], []];
    const fn = (item: string, { signal }: { signal: AbortSignal | undefined }): Promise<void> => {
      got.push(item);
      signals.push(signal);
      return new Promise((end) => void ends.push(end));
    };
    const over = outcome(queue.consume(fn, { workers: 2, stop: stop.signal, signal: call.signal }));
    await queue.put("one");
    await clock.advance(0);
    queue.offer("granted");
    stop.abort();
    queue.offer("kept");
    await clock.advance(0);
    same(
      [got, signals.map((signal) => signal?.aborted)],
      [
        ["one", "granted"],
        [false, false],
      ],
    );
    for (const end of ends) end();
    same([await over, queue.pollBatch(9), queue.closed], [undefined, ["kept"], false]);
    const { consumers, waitingConsumers } = queue.stats();
    same([consumers, waitingConsumers], [0, 0]);
    queue.offer("for others");
    same(await outcome(queue.consume(fn, { stop: stop.signal })), undefined); // it had stopped before it began
    same(queue.pollBatch(9), ["for others"]);
  },

  "can still be aborted when it has been told to stop, and fails the queue with what a call throws": async ({
    open,
    clock,
  }) => {
    const queue = open(4);
    const [stop, call] = [new AbortController(), new AbortController()];
    const failure = new Error("bad item");
    const fn = (item: string, { signal }: { signal: AbortSignal | undefined }): Promise<void> =>
      new Promise((_, reject) => {
        const end = (): void => reject(item === "bad" ? failure : (signal?.reason as Error));
        signal?.addEventListener("abort", end);
        if (item === "bad") stop.signal.addEventListener("abort", end);
      });
    queue.offer("one");
    const aborted = outcome(queue.consume(fn, { stop: stop.signal, signal: call.signal }));
    await clock.advance(0);
    queue.offer("bad");
    const failed = outcome(queue.consume(fn, { stop: stop.signal }));
    await clock.advance(0);
    stop.abort();
    same([await failed, await outcome(queue.put("late"))], [failure, failure]);
    call.abort("enough");
    same(await aborted, "enough");
  },

  "stops when its signal aborts, and fails nobody": async ({ open, clock }) => {
    const queue = open(2);
    const call = new AbortController();
    const got: string[] = [];
    const over = outcome(queue.consume((item) => void got.push(item), { signal: call.signal }));
    await queue.put("one");
    await clock.advance(0);
    queue.offer("granted");
    call.abort("enough");
    same([queue.offer("kept"), await over], [true, "enough"]);
    same([got, queue.pollBatch(9), queue.closed], [["one", "granted"], ["kept"], false]); // what was granted got to fn
    const { consumers, waitingConsumers } = queue.stats();
    same([consumers, waitingConsumers], [0, 0]);
  },

  "fails with the queue's error when somebody else fails it": async ({ open, clock }) => {
    const queue = open(2);
    const over = outcome(queue.consume(() => {}, { workers: 3 }));
    await clock.advance(0);
    queue.fail("gone");
    same([await over, queue.stats().consumers], ["gone", 0]);
  },

  "hands errors that come after the first to onLateError, but for the abort itself": async ({ open, clock }) => {
    const queue = open(3);
    for (const item of names(3)) queue.offer(item);
    const late: unknown[] = [];
    const fn = async (item: string, { signal }: { signal: AbortSignal | undefined }): Promise<void> => {
      await clock.advance(0);
      if (item === "item 1") throw "first";
      if (item === "item 2") signal?.throwIfAborted();
      throw "late";
    };
    const over = outcome(queue.consume(fn, { workers: 3, onLateError: (error) => late.push(error) }));
    same([await over, late], ["first", ["late"]]);
  },

  "takes the answer to its abort for no error of its own, also after a call that failed with undefined": async ({
    open,
    clock,
  }) => {
    const queue = open(2);
    for (const item of names(2)) queue.offer(item);
    const late: unknown[] = [];
    const fn = async (item: string, { signal }: { signal: AbortSignal | undefined }): Promise<void> => {
      await clock.advance(0);
      if (item === "item 1") throw undefined;
      signal?.throwIfAborted();
    };
    same(await outcome(queue.consume(fn, { workers: 2, onLateError: (error) => late.push(error) })), undefined);
    same([late, queue.closed], [[], true]);
  },

  "refuses to consume without a function or a worker": async ({ open }) => {
    const queue = open(1);
    queue.offer("in");
    same((await outcome(queue.consume(undefined as never))) instanceof TypeError, true);
    for (const workers of [0, 1.5])
      same((await outcome(queue.consume(() => {}, { workers }))) instanceof RangeError, true);
    same([thrown(() => queue.offer("out")), queue.size, queue.stats().consumers], ["nothing", 1, 0]);
  },
};
