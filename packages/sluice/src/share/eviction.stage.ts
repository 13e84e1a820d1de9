/** Reads to choose by, and what to compare with: seeded, so that every figure is the same each time. */
import { seededRandom } from "../testing/seeded-random.ts";
import { Sieve, SieveNode } from "./sieve.ts";

const KEYS = 10_000;
export const READS = 100_000;
/** A tenth of the keys. */
export const ROOM = KEYS / 10;

type Trace = readonly number[];

export const traces: Readonly<Record<"zipf" | "scan" | "loop" | "mixed" | "drift", () => Trace>> = {
  /** Each read by itself, the n-th key with a probability in proportion to 1 / n^0.9. */
  zipf: () => Array.from({ length: READS }, zipf(0.9, seededRandom(1))),
  /** The same, but after each 10 000 reads a scan of 5 000 keys that are read once and never again. */
  scan() {
    const draw = zipf(0.9, seededRandom(2));
    let fresh = KEYS;
    return Array.from({ length: READS }, (_, at) => (at % 15_000 < 10_000 ? draw() : (fresh += 1)));
  },
  /** Round and round through a fifth more keys than there is room for. */
  loop: () => Array.from({ length: READS }, (_, at) => at % (1.2 * ROOM)),
  /** Six reads in ten as in `zipf`, three of a loop, and one of a key that is read once. */
  mixed() {
    const random = seededRandom(3);
    const draw = zipf(0.9, random);
    let [once, looped] = [KEYS, 0];
    return Array.from({ length: READS }, () => {
      const kind = random();
      if (kind < 0.1) return (once += 1);
      return kind < 0.4 ? -1 - ((looped += 1) % (1.2 * ROOM)) : draw();
    });
  },
  /** As `zipf`, but with every 50 reads the most popular key becomes the least popular. */
  drift() {
    const draw = zipf(0.9, seededRandom(4));
    return Array.from({ length: READS }, (_, at) => (draw() + Math.floor(at / 50)) % KEYS);
  },
};

/** The share of reads that each finds in a cache of `room` entries. */
export const policies: Readonly<
  Record<"sluice" | "sieve" | "lru" | "popular" | "belady", (trace: Trace, room: number) => number>
> = {
  sluice(trace, room) {
    const sieve = new Sieve();
    const nodes = new Map<unknown, SieveNode>();
    return hitRate(trace, (key) => {
      const known = nodes.get(key);
      if (known !== undefined) return (known.isUsed = true);
      if (sieve.size >= room) {
        const gone = sieve.pick();
        sieve.remove(gone);
        nodes.delete(gone.key);
      }
      const node = new SieveNode(key);
      sieve.add(node, 1);
      nodes.set(key, node);
      return false;
    });
  },
  /** As published: one hand, which is at an index of the list. */
  sieve(trace, room) {
    const keys: number[] = [];
    const used = new Map<number, boolean>();
    let hand = 0;
    return hitRate(trace, (key) => {
      if (used.has(key)) return used.set(key, true) === used;
      for (; keys.length >= room; hand += 1) {
        if (hand >= keys.length) hand = 0;
        const next = keys[hand] ?? 0;
        if (used.get(next) === false) {
          keys.splice(hand, 1);
          used.delete(next);
          break;
        }
        used.set(next, false);
      }
      keys.push(key);
      used.set(key, false);
      return false;
    });
  },
  lru(trace, room) {
    const keys = new Set<number>();
    return hitRate(trace, (key) => {
      const isHit = keys.delete(key);
      const [oldest = 0] = keys.size >= room ? keys : [];
      if (keys.size >= room) keys.delete(oldest);
      keys.add(key);
      return isHit;
    });
  },
  /** The best without foresight where each read is by itself (Aho, Denning and Ullman 1971): the most popular stay. */
  popular(trace, room) {
    const seen = new Set<number>();
    return hitRate(trace, (key) => {
      if (key < 0 || key >= room) return false;
      const isHit = seen.has(key);
      seen.add(key);
      return isHit;
    });
  },
  /** Belady 1966: what is read again latest goes, be it what has just been read. Nothing can be better. */
  belady,
};

function hitRate(trace: Trace, read: (key: number, at: number) => boolean): number {
  return trace.reduce((hits, key, at) => hits + Number(read(key, at)), 0) / trace.length;
}

function belady(trace: Trace, room: number): number {
  const nextAt = new Float64Array(trace.length);
  const seenAt = new Map<number, number>();
  for (let at = trace.length - 1; at >= 0; at -= 1) {
    const key = trace[at] ?? 0;
    nextAt[at] = seenAt.get(key) ?? trace.length + at;
    seenAt.set(key, at);
  }
  const kept = new Map<number, number>(); // until when, by key
  const byEnd = new Map<number, number>(); // the key, by until when
  const ends: number[] = []; // a heap whose first is the latest; what is no longer in `byEnd` counts for nothing
  return hitRate(trace, (key, at) => {
    const end = nextAt[at] ?? 0;
    const isHit = kept.has(key);
    byEnd.delete(at);
    kept.set(key, end);
    byEnd.set(end, key);
    push(ends, end);
    while (kept.size > room) {
      const latest = pop(ends);
      const last = byEnd.get(latest);
      if (last !== undefined && byEnd.delete(latest)) kept.delete(last);
    }
    return isHit;
  });
}

function push(heap: number[], value: number): void {
  let slot = heap.push(value) - 1;
  for (let up = (slot - 1) >> 1; slot > 0 && (heap[up] ?? 0) < value; up = (slot - 1) >> 1) {
    heap[slot] = heap[up] ?? 0;
    slot = up;
  }
  heap[slot] = value;
}

function pop(heap: number[]): number {
  const first = heap[0] ?? 0;
  const last = heap.pop() ?? 0;
  if (heap.length === 0) return first;
  let slot = 0;
  for (;;) {
    const left = 2 * slot + 1;
    const child = (heap[left + 1] ?? -1) > (heap[left] ?? -1) ? left + 1 : left;
    if (child >= heap.length || (heap[child] ?? 0) <= last) break;
    heap[slot] = heap[child] ?? 0;
    slot = child;
  }
  heap[slot] = last;
  return first;
}

/** Draws from 0 to KEYS - 1, the lower the more often. */
function zipf(exponent: number, random: () => number): () => number {
  const sums = new Float64Array(KEYS);
  let sum = 0;
  for (let key = 0; key < KEYS; key += 1) sums[key] = sum += 1 / (key + 1) ** exponent;
  return () => {
    const drawn = random() * sum;
    let [low, high] = [0, KEYS - 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((sums[middle] ?? 0) < drawn) low = middle + 1;
      else high = middle;
    }
    return low;
  };
}
