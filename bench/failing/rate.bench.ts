// One token for each of a million keys, all within their limit: of new keys, and of known ones in random order; and
// promised ones of a single limiter. The floor is a map of counts, which knows no time, forgets no key and has no bound.
import { RateLimiterMemory } from "rate-limiter-flexible";
import { KeyedRateLimiter, RateLimiter } from "sluice";
import { compare, weigh } from "../harness.ts";

const KEYS = 1_000_000;
/** Of a second or two each; the peer's, before which it must forget a million keys one by one, of four. */
const ROUNDS = 5;
const LIMIT = { count: 100, perMs: 600_000, burst: 100 };
const keys = Array.from({ length: KEYS }, (_, user) => `user:${(user * 7_919) % 1_000_003}`);
const order = Uint32Array.from(keys, (_, place) => place);
for (let place = KEYS - 1, seed = 12_345; place > 0; place -= 1) {
  seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0;
  const other = seed % (place + 1);
  [order[place], order[other]] = [order[other] as number, order[place] as number];
}

/** The peer sets a timer for each key, which would fire in the midst of what comes next, and keep the program alive. */
let used: { readonly limiter: RateLimiterMemory; readonly count: number } | undefined;

async function forgetUsed(): Promise<void> {
  const { limiter, count = 0 } = used ?? {};
  for (let i = 0; i < count; i += 1) await limiter?.delete(keys[i] as string);
  used = undefined;
}

await compare(
  "rate-keyed-first",
  KEYS,
  {
    async sluice(ops) {
      await forgetUsed();
      const limiter = new KeyedRateLimiter(LIMIT);
      return () => {
        for (let i = 0; i < ops; i += 1) limiter.tryTake(keys[i] as string);
      };
    },
    async "rate-limiter-flexible"(ops) {
      await forgetUsed();
      const limiter = new RateLimiterMemory({ points: 100, duration: 600 });
      used = { limiter, count: ops };
      return async () => {
        for (let i = 0; i < ops; i += 1) await limiter.consume(keys[i] as string);
      };
    },
    async floor(ops) {
      await forgetUsed();
      const counts = new Map<string, number>();
      return () => {
        for (let i = 0; i < ops; i += 1) countOne(counts, keys[i] as string);
      };
    },
  },
  ROUNDS,
);
await forgetUsed();

let ours: KeyedRateLimiter | undefined;
let theirs: RateLimiterMemory | undefined;
const counted = new Map<string, number>();

await compare(
  "rate-keyed",
  KEYS,
  {
    sluice(ops) {
      const limiter = (ours ??= new KeyedRateLimiter(LIMIT));
      if (limiter.stats().keys === 0) for (let i = 0; i < ops; i += 1) limiter.tryTake(keys[i] as string);
      const places = order.filter((place) => place < ops);
      return () => {
        for (const place of places) limiter.tryTake(keys[place] as string);
      };
    },
    async "rate-limiter-flexible"(ops) {
      if (theirs === undefined) {
        theirs = new RateLimiterMemory({ points: 100, duration: 600 });
        for (let i = 0; i < ops; i += 1) await theirs.consume(keys[i] as string);
        used = { limiter: theirs, count: ops };
      }
      const limiter = theirs;
      const places = order.filter((place) => place < ops);
      return async () => {
        for (const place of places) await limiter.consume(keys[place] as string);
      };
    },
    floor(ops) {
      if (counted.size === 0) for (let i = 0; i < ops; i += 1) countOne(counted, keys[i] as string);
      const places = order.filter((place) => place < ops);
      return () => {
        for (const place of places) countOne(counted, keys[place] as string);
      };
    },
  },
  ROUNDS,
);
await forgetUsed();
counted.clear();

await weigh(
  "rate-keyed-memory",
  KEYS,
  {
    sluice(count) {
      const limiter = new KeyedRateLimiter(LIMIT);
      for (let i = 0; i < count; i += 1) limiter.tryTake(keys[i] as string);
      return limiter;
    },
    async "rate-limiter-flexible"(count) {
      const limiter = new RateLimiterMemory({ points: 100, duration: 0 }); // no expiry, so no timer for each key
      for (let i = 0; i < count; i += 1) await limiter.consume(keys[i] as string);
      return limiter;
    },
  },
  ROUNDS,
);

await compare("rate-take", 200_000, {
  async sluice(ops) {
    const limiter = new RateLimiter({ count: ops, perMs: 1_000, burst: ops });
    for (let i = 0; i < ops; i += 1) await limiter.take();
  },
  async "rate-limiter-flexible"(ops) {
    const limiter = new RateLimiterMemory({ points: ops, duration: 0 });
    for (let i = 0; i < ops; i += 1) await limiter.consume("one");
  },
});

function countOne(counts: Map<string, number>, key: string): boolean {
  const sum = (counts.get(key) ?? 0) + 1;
  counts.set(key, sum);
  return sum <= LIMIT.count;
}
