// Against the floor: two counters and an array of resolvers, which knows neither signals nor timeouts nor bounds.
import { compare, weigh } from "../../../../bench/harness.ts";
import { RwLock } from "./rw-lock.ts";

class Floor {
  #reading = 0;
  #isWriting = false;
  readonly #line: { readonly isWriter: boolean; readonly resolve: () => void }[] = [];

  read(): Promise<void> {
    return this.#enter(false);
  }

  write(): Promise<void> {
    return this.#enter(true);
  }

  endRead(): void {
    this.#reading -= 1;
    this.#serve();
  }

  endWrite(): void {
    this.#isWriting = false;
    this.#serve();
  }

  #enter(isWriter: boolean): Promise<void> {
    if (this.#line.length === 0 && this.#admits(isWriter)) return Promise.resolve();
    return new Promise((resolve) => void this.#line.push({ isWriter, resolve }));
  }

  #admits(isWriter: boolean): boolean {
    if (this.#isWriting || (isWriter && this.#reading > 0)) return false;
    if (isWriter) this.#isWriting = true;
    else this.#reading += 1;
    return true;
  }

  #serve(): void {
    for (let [next] = this.#line; next !== undefined && this.#admits(next.isWriter); [next] = this.#line) {
      this.#line.shift();
      next.resolve();
    }
  }
}

const WRITE_EACH = 10;

await compare("rw-lock", 200_000, {
  async sluice(ops) {
    const lock = new RwLock();
    for (let i = 0; i < ops; i += 1) (await (i % WRITE_EACH === 0 ? lock.write() : lock.read())).release();
  },
  async floor(ops) {
    const lock = new Floor();
    for (let i = 0; i < ops; i += 1) {
      const isWriter = i % WRITE_EACH === 0;
      await (isWriter ? lock.write() : lock.read());
      if (isWriter) lock.endWrite();
      else lock.endRead();
    }
  },
});

const WORKERS = 100;
const pause = Promise.resolve();

await compare("rw-lock-contended", 50_000, {
  async sluice(ops) {
    const lock = new RwLock();
    const work = async (_: unknown, id: number): Promise<void> => {
      for (let i = 0; i < ops / WORKERS; i += 1) {
        const guard = await ((i + id) % WRITE_EACH === 0 ? lock.write() : lock.read());
        await pause;
        guard.release();
      }
    };
    await Promise.all(Array.from({ length: WORKERS }, work));
  },
  async floor(ops) {
    const lock = new Floor();
    const work = async (_: unknown, id: number): Promise<void> => {
      for (let i = 0; i < ops / WORKERS; i += 1) {
        const isWriter = (i + id) % WRITE_EACH === 0;
        await (isWriter ? lock.write() : lock.read());
        await pause;
        if (isWriter) lock.endWrite();
        else lock.endRead();
      }
    };
    await Promise.all(Array.from({ length: WORKERS }, work));
  },
});

await weigh("rw-lock-waiter", 100_000, {
  sluice(count) {
    const lock = new RwLock();
    const held = lock.tryWrite();
    for (let i = 0; i < count; i += 1) void lock.read();
    return [lock, held];
  },
  floor(count) {
    const lock = new Floor();
    void lock.write();
    for (let i = 0; i < count; i += 1) void lock.read();
    return lock;
  },
});
