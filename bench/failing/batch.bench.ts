// A batch per turn of a thousand loads, without a cache, of keys in order and in any, and with one in which every key is. The floor keeps an array of
// keys and one of resolvers, and knows neither repeated keys nor errors nor aborts; that of the hits gives the promise it has.
import DataLoader from "dataloader";
import { batch } from "sluice";
import { compare } from "../harness.ts";

const SIZE = 1_000;
const LOADS = 100_000;

const ascending = Array.from({ length: SIZE }, (_, place) => place);
const shuffled = ascending.map((place) => (place * 389) % SIZE);

type Load = (key: number) => Promise<number>;

await compare("batch", LOADS, {
  batch: (ops) => misses(ops, ours()),
  floor: (ops) => misses(ops, coalesced()),
  dataloader: (ops) => misses(ops, theirs(false)),
});

await compare("batch-any-order", LOADS, {
  batch: (ops) => misses(ops, ours(), shuffled),
  floor: (ops) => misses(ops, coalesced(), shuffled),
  dataloader: (ops) => misses(ops, theirs(false), shuffled),
});

await compare("batch-hit", LOADS, {
  batch: (ops) => hits(ops, ours(new Map())),
  floor: (ops) => hits(ops, kept()),
  dataloader: (ops) => hits(ops, theirs(true)),
});

async function misses(ops: number, load: Load, order = ascending): Promise<void> {
  for (let from = 0; from < ops; from += SIZE) await round(from, load, order);
}

/** All keys have been loaded before the time is taken. */
async function hits(ops: number, load: Load): Promise<() => Promise<void>> {
  await round(0, load);
  return async () => {
    for (let done = 0; done < ops; done += SIZE) await round(0, load);
  };
}

async function round(from: number, load: Load, order = ascending): Promise<void> {
  const loads: Promise<number>[] = [];
  for (const place of order) loads.push(load(from + place));
  const values = await Promise.all(loads);
  if (values[0] !== from + (order[0] ?? 0) + 1) throw new Error("wrong answer");
}

function query(keys: readonly number[]): Promise<number[]> {
  return Promise.resolve(keys.map((key) => key + 1));
}

function ours(cache?: Map<unknown, Promise<number>>): Load {
  const batcher = batch(query, { cache });
  return (key) => batcher.load(key);
}

function theirs(cache: boolean): Load {
  const loader = new DataLoader(query, { cache });
  return (key) => loader.load(key);
}

function coalesced(): Load {
  let keys: number[] = [];
  let resolvers: ((value: number) => void)[] = [];
  const send = async (): Promise<void> => {
    const mine = resolvers;
    resolvers = [];
    const values = await query(keys.splice(0));
    mine.forEach((resolve, index) => resolve(values[index] ?? 0));
  };
  return (key) =>
    new Promise((resolve) => {
      if (keys.push(key) === 1) queueMicrotask(() => void send());
      resolvers.push(resolve);
    });
}

function kept(): Load {
  const loads = new Map<number, Promise<number>>();
  const load = coalesced();
  return (key) => {
    const found = loads.get(key) ?? load(key);
    loads.set(key, found);
    return found;
  };
}
