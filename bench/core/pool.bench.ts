// One resource borrowed and given back, at once and by a thousand callers in turn. Against the floor: an array of what is
// idle and an array of resolvers, which knows neither signals nor ages nor failures.
import { type Lease, Pool } from "sluice";
import { compare, weigh } from "../harness.ts";

class Floor<R> {
  readonly #idle: R[] = [];
  readonly #line: ((resource: R) => void)[] = [];

  constructor(resource: R) {
    this.#idle.push(resource);
  }

  acquire(): Promise<R> {
    const resource = this.#idle.pop();
    if (resource !== undefined) return Promise.resolve(resource);
    return new Promise((resolve) => void this.#line.push(resolve));
  }

  release(resource: R): void {
    const next = this.#line.shift();
    if (next === undefined) this.#idle.push(resource);
    else next(resource);
  }
}

const create = (): object => ({});
const sizes = { idleMs: 30_000, lifetimeMs: 3_600_000 };

await compare("pool", 300_000, {
  async sluice(ops) {
    const pool = new Pool(1, { create, ...sizes });
    for (let i = 0; i < ops; i += 1) (await pool.acquire()).release();
    await pool.close();
  },
  async floor(ops) {
    const pool = new Floor({});
    for (let i = 0; i < ops; i += 1) pool.release(await pool.acquire());
  },
});

const CALLERS = 1_000;
const pause = Promise.resolve();

await compare("pool-contended", 100_000, {
  async sluice(ops) {
    const pool = new Pool(8, { create, ...sizes });
    const call = async (): Promise<void> => {
      for (let i = 0; i < ops / CALLERS; i += 1) {
        const lease = await pool.acquire();
        await pause;
        lease.release();
      }
    };
    await Promise.all(Array.from({ length: CALLERS }, call));
    await pool.close();
  },
  async floor(ops) {
    const pool = new Floor({});
    for (let i = 1; i < 8; i += 1) pool.release({});
    const call = async (): Promise<void> => {
      for (let i = 0; i < ops / CALLERS; i += 1) {
        const resource = await pool.acquire();
        await pause;
        pool.release(resource);
      }
    };
    await Promise.all(Array.from({ length: CALLERS }, call));
  },
});

await weigh("pool-waiter", 100_000, {
  async sluice(count) {
    const pool = new Pool(1, { create });
    const held: Lease<object> = await pool.acquire();
    for (let i = 0; i < count; i += 1) void pool.acquire();
    return [pool, held];
  },
  async floor(count) {
    const pool = new Floor({});
    const held = await pool.acquire();
    for (let i = 0; i < count; i += 1) void pool.acquire();
    return [pool, held];
  },
});
