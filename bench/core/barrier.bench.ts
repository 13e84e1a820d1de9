// Against the floor: a counter and one promise for each round, which knows neither signals nor timeouts nor who is missing.
import { Barrier } from "sluice";
import { compare, weigh } from "../harness.ts";

class Floor {
  readonly #parties: number;
  #left: number;
  #round = Promise.withResolvers<void>();

  constructor(parties: number) {
    this.#parties = this.#left = parties;
  }

  wait(): Promise<void> {
    const { promise, resolve } = this.#round;
    this.#left -= 1;
    if (this.#left > 0) return promise;
    this.#left = this.#parties;
    this.#round = Promise.withResolvers<void>();
    resolve();
    return promise;
  }
}

const PARTIES = 10;

/** An operation is one party's round. */
function rounds(make: () => { wait(): Promise<unknown> }): (ops: number) => Promise<unknown> {
  return (ops) => {
    const barrier = make();
    const party = async (): Promise<void> => {
      for (let i = 0; i < ops / PARTIES; i += 1) await barrier.wait();
    };
    return Promise.all(Array.from({ length: PARTIES }, party));
  };
}

await compare("barrier", 200_000, {
  sluice: rounds(() => new Barrier(PARTIES)),
  floor: rounds(() => new Floor(PARTIES)),
});

await weigh("barrier-waiter", 100_000, {
  sluice(count) {
    const barrier = new Barrier(count + 1);
    for (let i = 0; i < count; i += 1) void barrier.wait();
    return barrier;
  },
  floor(count) {
    const barrier = new Floor(count + 1);
    return [barrier, Array.from({ length: count }, () => barrier.wait().then(nothing))];
  },
});

function nothing(): void {}
