// Eight readers, each with room for 64 and read to the end. The floor: an array for each reader and one promise for all
// who wait, which bounds nothing.
import { Effect, PubSub } from "effect";
import { Broadcast } from "sluice";
import { compare } from "../harness.ts";

const READERS = 8;
const CAPACITY = 64;

class Floor {
  readonly lines: number[][] = Array.from({ length: READERS }, () => []);
  #next = Promise.withResolvers<void>();

  publish(item: number): void {
    for (const line of this.lines) line.push(item);
    this.#next.resolve();
    this.#next = Promise.withResolvers();
  }

  change(): Promise<void> {
    return this.#next.promise;
  }
}

await compare("broadcast", 20_000, {
  async Broadcast(ops) {
    const topic = new Broadcast<number>();
    const read = async (): Promise<number> => {
      let total = 0;
      for await (const item of topic.subscribe({ capacity: CAPACITY })) total += item;
      return total;
    };
    const readers = Array.from({ length: READERS }, read);
    for (let item = 0; item < ops; item += 1) await topic.publish(item);
    topic.close();
    await Promise.all(readers);
  },
  async effect(ops) {
    const run = Effect.gen(function* () {
      const topic = yield* PubSub.bounded<number>(CAPACITY);
      const reader = Effect.scoped(
        Effect.gen(function* () {
          const sub = yield* PubSub.subscribe(topic);
          let total = 0;
          for (let item = 0; item < ops; item += 1) total += yield* PubSub.take(sub);
          return total;
        }),
      );
      const publisher = Effect.gen(function* () {
        yield* Effect.yieldNow;
        for (let item = 0; item < ops; item += 1) yield* PubSub.publish(topic, item);
      });
      const readers = Array.from({ length: READERS }, () => reader);
      yield* Effect.all([...readers, publisher], { concurrency: "unbounded" });
    });
    await Effect.runPromise(run);
  },
  async floor(ops) {
    const topic = new Floor();
    const read = async (line: readonly number[]): Promise<number> => {
      let total = 0;
      for (let index = 0; index < ops; index += 1) {
        while (index >= line.length) await topic.change();
        total += line[index] as number;
      }
      return total;
    };
    const readers = topic.lines.map(read);
    for (let item = 0; item < ops; item += 1) {
      topic.publish(item);
      await Promise.resolve(); // as a publisher that awaits
    }
    await Promise.all(readers);
  },
});
