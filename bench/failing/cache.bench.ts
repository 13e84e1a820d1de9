// A value that is there, and one that has to be got first: against the least that does it, and lru-cache.
import { LRUCache } from "lru-cache";
import { Cache } from "sluice";
import { compare } from "../harness.ts";

const KEYS = 1_024;
const keys = Array.from({ length: KEYS }, (_, n) => `key-${n}`);
const lengthOf = (key: string): Promise<number> => Promise.resolve(key.length);

/** Reads all keys in turn, each awaited. The loop is made anew for each, so that none is compiled for another. */
function reading(
  get: (key: string) => number | Promise<number> | Promise<number | undefined>,
): (ops: number) => unknown {
  // oxlint-disable-next-line typescript/no-implied-eval -- a loop of its own
  const loop = new Function(
    "get",
    "keys",
    "return async (ops) => { let sum = 0; for (let i = 0; i < ops; i += 1) sum += await get(keys[i & (keys.length - 1)]); return sum; }",
  ) as (get: unknown, keys: readonly string[]) => (ops: number) => unknown;
  return loop(get, keys);
}

const values = new Map(keys.map((key) => [key, key.length]));
const ours = new Cache(lengthOf, { maxEntries: 2 * KEYS });
const oursForTime = new Cache(lengthOf, { maxEntries: 2 * KEYS, ttlMs: 60_000 });
const theirs = new LRUCache({ max: 2 * KEYS, fetchMethod: lengthOf });
const theirsForTime = new LRUCache({ max: 2 * KEYS, ttl: 60_000, fetchMethod: lengthOf });
for (const key of keys)
  await Promise.all([ours.load(key), oursForTime.load(key), theirs.fetch(key), theirsForTime.fetch(key)]);

await compare("cache-hit", 200_000, {
  Cache: reading((key) => ours.load(key)),
  floor: reading((key) => values.get(key) ?? 0),
  "lru-cache": reading((key) => theirs.fetch(key)),
});

await compare("cache-hit-ttl", 200_000, {
  Cache: reading((key) => oursForTime.load(key)),
  floor: reading((key) => values.get(key) ?? 0),
  "lru-cache": reading((key) => theirsForTime.fetch(key)),
});

const same = (key: number): Promise<number> => Promise.resolve(key);

await compare("cache-miss", 50_000, {
  async Cache(ops) {
    const cache = new Cache(same, { maxEntries: ops });
    for (let key = 0; key < ops; key += 1) await cache.load(key);
  },
  async "lru-cache"(ops) {
    const cache = new LRUCache({ max: ops, fetchMethod: same });
    for (let key = 0; key < ops; key += 1) await cache.fetch(key);
  },
  async floor(ops) {
    const promises = new Map<number, Promise<number>>();
    for (let key = 0; key < ops; key += 1) {
      let promise = promises.get(key);
      if (promise === undefined) promises.set(key, (promise = same(key)));
      await promise;
    }
  },
});
