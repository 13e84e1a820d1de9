// Three stages that answer in the next turn, with buffers of 64. The floor: loops over rings of fixed length that are
// awaited only when full or empty, and know neither errors nor signals nor ages nor an end but a count.
import { Effect, Stream } from "effect";
import { pipeline } from "sluice";
import { compare } from "../harness.ts";

const BUFFER = 64;
const increment = async (item: number): Promise<number> => item + 1;
const list = (length: number): number[] => Array.from({ length }, (_, item) => item);

class Buffer {
  readonly #slots: number[] = Array.from({ length: BUFFER }, () => 0);
  #head = 0;
  #tail = 0;
  #wake: (() => void) | undefined;

  async put(item: number): Promise<void> {
    while (this.#tail - this.#head === BUFFER) await this.#change();
    this.#slots[this.#tail % BUFFER] = item;
    this.#tail += 1;
    this.#changed();
  }

  async take(): Promise<number> {
    while (this.#tail === this.#head) await this.#change();
    const item = this.#slots[this.#head % BUFFER] as number;
    this.#head += 1;
    this.#changed();
    return item;
  }

  #change(): Promise<void> {
    return new Promise((resolve) => void (this.#wake = resolve));
  }

  #changed(): void {
    const wake = this.#wake;
    this.#wake = undefined;
    wake?.();
  }
}

async function floor(items: readonly number[]): Promise<number> {
  const [first, second, third] = [new Buffer(), new Buffer(), new Buffer()];
  const feed = async (): Promise<void> => {
    for (const item of items) await first.put(item);
  };
  const work = async (from: Buffer, to: Buffer): Promise<void> => {
    for (let done = 0; done < items.length; done += 1) await to.put(await increment(await from.take()));
  };
  const read = async (): Promise<number> => {
    let total = 0;
    for (let done = 0; done < items.length; done += 1) total += await increment(await third.take());
    return total;
  };
  const [total] = await Promise.all([read(), feed(), work(first, second), work(second, third)]);
  return total;
}

const effect = Stream.mapEffect((item: number) => Effect.promise(() => increment(item)));
const buffer = Stream.buffer({ capacity: BUFFER });

await compare("pipeline", 30_000, {
  async pipeline(ops) {
    let total = 0;
    const results = pipeline(list(ops))
      .stage("first", increment, { buffer: BUFFER })
      .stage("second", increment, { buffer: BUFFER })
      .stage("third", increment, { buffer: BUFFER });
    for await (const result of results) total += result;
    return total;
  },
  effect: (ops) =>
    Effect.runPromise(
      Stream.fromArray(list(ops)).pipe(buffer, effect, buffer, effect, buffer, effect, Stream.runDrain),
    ),
  floor: (ops) => floor(list(ops)),
});
