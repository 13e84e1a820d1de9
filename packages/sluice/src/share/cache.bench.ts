// What a bound, a lifetime and shared loads add to a map of promises, which is the floor. Against a peer: bench/failing.
import { compare } from "../../../../bench/harness.ts";
import { Cache } from "./cache.ts";
import { freshness } from "./freshness.ts";

const KEYS = 1_024;
const load = (key: number): Promise<number> => Promise.resolve(key);
const options = { maxEntries: KEYS };
const plain = new Cache(load, options);
const aging = new Cache(load, { ...options, ttlMs: 60_000, freshness: freshness({ idleMs: 60_000, staleMs: 1_000 }) });
const promises = new Map(Array.from({ length: KEYS }, (_, key) => [key, Promise.resolve(key)]));
for (let key = 0; key < KEYS; key += 1) await Promise.all([plain.load(key), aging.load(key)]);

await compare("cache-read", 300_000, {
  async Cache(ops) {
    for (let i = 0; i < ops; i += 1) await plain.load(i % KEYS);
  },
  async "Cache, aging"(ops) {
    for (let i = 0; i < ops; i += 1) await aging.load(i % KEYS);
  },
  async floor(ops) {
    for (let i = 0; i < ops; i += 1) await promises.get(i % KEYS);
  },
});

await compare("cache-evict", 50_000, {
  async Cache(ops) {
    const cache = new Cache(load, options);
    for (let key = 0; key < ops; key += 1) await cache.load(key);
  },
  async floor(ops) {
    const map = new Map<number, Promise<number>>();
    for (let key = 0; key < ops; key += 1) {
      const promise = load(key);
      if (map.size >= KEYS) map.delete(key - KEYS);
      map.set(key, promise);
      await promise;
    }
  },
});
