// Against the floor: the same counter of permits without the two places that would tell who watches, which must cost
// nothing while nobody does. Then a semaphore that has nothing beside one with a name, and while somebody listens to
// events; and last what a watch costs, without stacks and with them.
import { compare } from "../../../../bench/harness.ts";
import { probe } from "../internal/probe.ts";
import { Semaphore } from "../sync/semaphore.ts";
import { enable } from "./enable.ts";
import { onEvent } from "./events.ts";

class Held {
  readonly #lender: Floor;

  constructor(lender: Floor) {
    this.#lender = lender;
  }

  release(): void {
    this.#lender.giveBack(this);
  }
}

class Floor {
  free = 1;

  take(): Held {
    this.free -= 1;
    return new Held(this);
  }

  giveBack(_held: Held): void {
    this.free += 1;
  }
}

class Telling extends Floor {
  override take(): Held {
    this.free -= 1;
    const held = new Held(this);
    probe?.took(this, held);
    return held;
  }

  override giveBack(held: Held): void {
    probe?.gaveBack(held);
    this.free += 1;
  }
}

await compare("unobserved", 10_000_000, {
  sluice(ops) {
    const telling = new Telling();
    for (let i = 0; i < ops; i += 1) telling.take().release();
    return telling;
  },
  floor(ops) {
    const floor = new Floor();
    for (let i = 0; i < ops; i += 1) floor.take().release();
    return floor;
  },
});

const [plain, known] = [new Semaphore(1), new Semaphore(1, { name: "known" })];

function takeAndGiveBack(sem: Semaphore, ops: number): void {
  for (let i = 0; i < ops; i += 1) sem.tryAcquire()?.release();
}

function whileEnabled(stacks: boolean, work: () => void): void {
  const watch = enable({ stacks });
  work();
  watch.disable();
}

await compare("unobserved-name", 2_000_000, {
  sluice: (ops) => takeAndGiveBack(plain, ops),
  named: (ops) => takeAndGiveBack(known, ops),
  listened(ops) {
    const stop = onEvent(() => {});
    takeAndGiveBack(plain, ops);
    stop();
  },
});

await compare("observed", 100_000, {
  sluice: (ops) => whileEnabled(false, () => takeAndGiveBack(plain, ops)),
  stacks: (ops) => whileEnabled(true, () => takeAndGiveBack(plain, ops)),
});
