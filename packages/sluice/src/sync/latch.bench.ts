// Against the floor: a counter and one promise for all, which knows neither signals nor timeouts nor how many wait.
import { compare, weigh } from "../../../../bench/harness.ts";
import { Latch } from "./latch.ts";

class Floor {
  #left: number;
  readonly #opened = Promise.withResolvers<void>();

  constructor(count: number) {
    this.#left = count;
  }

  countDown(): void {
    this.#left -= 1;
    if (this.#left === 0) this.#opened.resolve();
  }

  wait(): Promise<void> {
    return this.#opened.promise;
  }
}

const WAITERS = 10;

/** Each operation is a latch of its own, counted down by ten whom ten wait for. */
function work(make: (count: number) => Floor | Latch): (ops: number) => Promise<void> {
  return async (ops) => {
    for (let i = 0; i < ops; i += 1) {
      const latch = make(WAITERS);
      let last: Promise<void> | undefined;
      for (let waiter = 0; waiter < WAITERS; waiter += 1) last = latch.wait();
      for (let waiter = 0; waiter < WAITERS; waiter += 1) latch.countDown();
      await last;
    }
  };
}

await compare("latch", 50_000, {
  sluice: work((count) => new Latch(count)),
  floor: work((count) => new Floor(count)),
});

await weigh("latch-waiter", 100_000, {
  sluice(count) {
    const latch = new Latch(1);
    for (let i = 0; i < count; i += 1) void latch.wait();
    return latch;
  },
  floor(count) {
    const latch = new Floor(1);
    return [latch, Array.from({ length: count }, () => latch.wait().then(nothing))];
  },
});

function nothing(): void {}
