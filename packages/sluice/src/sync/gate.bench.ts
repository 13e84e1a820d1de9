// Against the floor: a flag and an array of resolvers, which knows neither signals nor timeouts nor bounds.
import { compare } from "../../../../bench/harness.ts";
import { Gate } from "./gate.ts";

class Floor {
  #isOpen = false;
  #line: (() => void)[] = [];

  open(): void {
    this.#isOpen = true;
    for (const resolve of this.#line) resolve();
    this.#line = [];
  }

  close(): void {
    this.#isOpen = false;
  }

  wait(): Promise<void> {
    if (this.#isOpen) return Promise.resolve();
    return new Promise((resolve) => void this.#line.push(resolve));
  }
}

const WAITERS = 10;

/** Each operation closes the gate for ten, who then go through, and for ten who find it open. */
function work(make: () => Floor | Gate): (ops: number) => Promise<void> {
  return async (ops) => {
    const gate = make();
    for (let i = 0; i < ops; i += 1) {
      let last: Promise<void> | undefined;
      for (let waiter = 0; waiter < WAITERS; waiter += 1) last = gate.wait();
      gate.open();
      await last;
      for (let waiter = 0; waiter < WAITERS; waiter += 1) await gate.wait();
      gate.close();
    }
  };
}

await compare("gate", 20_000, { sluice: work(() => new Gate()), floor: work(() => new Floor()) });
