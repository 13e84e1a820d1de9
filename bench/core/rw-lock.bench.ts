// Nine reads to a write. async-mutex has no such lock: its mutex is what people use instead.
import { Mutex } from "async-mutex";
import { Effect, TxReentrantLock } from "effect";
import { RwLock } from "sluice";
import { compare } from "../harness.ts";

const WRITE_EACH = 10;

await compare("rw-lock", 100_000, {
  async sluice(ops) {
    const lock = new RwLock();
    for (let i = 0; i < ops; i += 1) (await (i % WRITE_EACH === 0 ? lock.write() : lock.read())).release();
  },
  async "async-mutex"(ops) {
    const mutex = new Mutex();
    for (let i = 0; i < ops; i += 1) (await mutex.acquire())();
  },
  effect(ops) {
    const all = Effect.gen(function* () {
      const lock = yield* TxReentrantLock.make();
      const read = TxReentrantLock.withReadLock(lock, Effect.void);
      const write = TxReentrantLock.withWriteLock(lock, Effect.void);
      for (let i = 0; i < ops; i += 1) yield* i % WRITE_EACH === 0 ? write : read;
    });
    return Effect.runPromise(all);
  },
});

const WORKERS = 100;
const pause = Promise.resolve();

/** Each worker holds it for a turn, again and again. */
await compare("rw-lock-contended", 20_000, {
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
  async "async-mutex"(ops) {
    const mutex = new Mutex();
    const work = async (): Promise<void> => {
      for (let i = 0; i < ops / WORKERS; i += 1) {
        const release = await mutex.acquire();
        await pause;
        release();
      }
    };
    await Promise.all(Array.from({ length: WORKERS }, work));
  },
  effect(ops) {
    const section = Effect.promise(() => pause);
    const all = Effect.gen(function* () {
      const lock = yield* TxReentrantLock.make();
      const read = TxReentrantLock.withReadLock(lock, section);
      const write = TxReentrantLock.withWriteLock(lock, section);
      const work = (id: number): Effect.Effect<void> =>
        Effect.gen(function* () {
          for (let i = 0; i < ops / WORKERS; i += 1) yield* (i + id) % WRITE_EACH === 0 ? write : read;
        });
      const ids = Array.from({ length: WORKERS }, (_, id) => id);
      yield* Effect.forEach(ids, work, { concurrency: "unbounded", discard: true });
    });
    return Effect.runPromise(all);
  },
});
