// A hundred callers for each of many keys, none of them with a signal. The floor is a map of promises that forgets a load
// when it has ended; it knows no aborts, no ages and no loads that wait for themselves.
import { LRUCache } from "lru-cache";
import { singleFlight } from "sluice";
import { compare } from "../harness.ts";

const CALLERS = 100;
const LOADS = 400_000;

type Load = (key: string) => Promise<unknown>;

await compare("single-flight", LOADS, {
  singleFlight(ops) {
    const flights = singleFlight(work);
    return crowds(ops, (key) => flights.load(key));
  },
  floor: (ops) => crowds(ops, mapOfPromises()),
  "lru-cache"(ops) {
    const cache = new LRUCache<string, object>({ max: 4_096, fetchMethod: work });
    return crowds(ops, (key) => cache.fetch(key));
  },
});

async function crowds(ops: number, load: Load): Promise<void> {
  for (let key = 0; key < ops / CALLERS; key += 1) {
    const id = `key ${key}`;
    const loads: Promise<unknown>[] = [];
    for (let i = 0; i < CALLERS; i += 1) loads.push(load(id));
    await Promise.all(loads);
  }
}

function work(): Promise<object> {
  return new Promise((resolve) => queueMicrotask(() => resolve({})));
}

function mapOfPromises(): Load {
  const flights = new Map<string, Promise<unknown>>();
  return (key) => {
    const found = flights.get(key);
    if (found !== undefined) return found;
    const started = work().finally(() => flights.delete(key));
    flights.set(key, started);
    return started;
  };
}
