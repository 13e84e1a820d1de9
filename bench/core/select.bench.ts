// Against the race of two takes in Effect, and against the floor: two takes of one's own by hand, of which the one that
// comes first calls the other off, without fairness, time or signals.
import { Effect, Queue as EffectQueue } from "effect";
import { Queue, select, taking } from "sluice";
import { compare } from "../harness.ts";

/** One item at a time, and one who waits. */
class Slot {
  readonly items: number[] = [];
  waiting: ((item: number) => void) | undefined;

  offer(item: number): void {
    if (this.waiting === undefined) this.items.push(item);
    else this.waiting(item);
  }
}

function takeEither(a: Slot, b: Slot): Promise<number> {
  const item = a.items.pop() ?? b.items.pop();
  if (item !== undefined) return Promise.resolve(item);
  return new Promise((resolve) => {
    a.waiting = b.waiting = (next) => {
      a.waiting = b.waiting = undefined;
      resolve(next);
    };
  });
}

await compare("select-ready", 100_000, {
  async sluice(ops) {
    const [a, b] = [new Queue<number>(1), new Queue<number>(1)];
    for (let item = 0; item < ops; item += 1) {
      b.offer(item);
      await select({ a: taking(a), b: taking(b) });
    }
  },
  async floor(ops) {
    const [a, b] = [new Slot(), new Slot()];
    for (let item = 0; item < ops; item += 1) {
      b.offer(item);
      await takeEither(a, b);
    }
  },
  effect: (ops) =>
    Effect.runPromise(
      Effect.gen(function* () {
        const [a, b] = [yield* EffectQueue.bounded<number>(1), yield* EffectQueue.bounded<number>(1)];
        for (let item = 0; item < ops; item += 1) {
          yield* EffectQueue.offer(b, item);
          yield* Effect.raceFirst(EffectQueue.take(a), EffectQueue.take(b));
        }
      }),
    ),
});

await compare("select-waiting", 100_000, {
  async sluice(ops) {
    const [a, b] = [new Queue<number>(1), new Queue<number>(1)];
    for (let item = 0; item < ops; item += 1) {
      const selected = select({ a: taking(a), b: taking(b) });
      b.offer(item);
      await selected;
    }
  },
  async floor(ops) {
    const [a, b] = [new Slot(), new Slot()];
    for (let item = 0; item < ops; item += 1) {
      const taken = takeEither(a, b);
      b.offer(item);
      await taken;
    }
  },
});
