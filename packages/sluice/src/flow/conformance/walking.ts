/** Long random walks: each item must go one way, whatever is done in between. */
import type { WhenFull } from "../queue-options.ts";
import type { Reservation } from "../reserve.ts";
import { type AnyQueue, type Facts, same, type Stage } from "./case.ts";

export const walking: Facts = Object.fromEntries(
  (["wait", "reject", "drop-newest", "drop-oldest"] as const).map((whenFull) => [
    `lets each item go one way, and none twice or nowhere, with whenFull ${whenFull}`,
    async (stage: Stage) => {
      for (let seed = 1; seed <= 25; seed += 1) await walk(stage, whenFull, seed);
    },
  ]),
);

async function walk({ open, clock }: Stage, whenFull: WhenFull, seed: number): Promise<void> {
  const next = chance(seed);
  const [brought, ways]: [number[], number[]] = [[], []];
  const queue = open<number>(1 + (seed % 3), { whenFull, onUndelivered: (item) => ways.push(item) });
  const places: Reservation<number>[] = [];
  let call = new AbortController();
  for (let step = 0; step < 120; step += 1) {
    const options = { signal: call.signal, timeoutMs: next(3) === 0 ? 10 : Infinity };
    const item = step;
    const told = (isIn: unknown): unknown => isIn === true || ways.push(item);
    const act = next(step < 100 ? 9 : 10);
    if (act < 2) void queue.put(item, options).then(told, () => told(false));
    else if (act === 2) told(queue.offer(item));
    else if (act === 3)
      void queue.take(options).then(
        (taken) => ways.push(taken),
        () => {},
      );
    else if (act === 4) ways.push(...queue.pollBatch(1 + next(2)));
    else if (act === 5)
      void queue.takeBatch(2, { ...options, maxWaitMs: 5 }).then(
        (taken) => ways.push(...taken),
        () => {},
      );
    else if (act === 6)
      void queue.reserve(options).then(
        (place) => places.push(place),
        () => {},
      );
    else if (act === 7) call = (call.abort(), new AbortController());
    else if (act === 8) await clock.advance(next(8));
    else end(queue, next(4));
    if (act <= 2) brought.push(item);
    if (next(2) === 0) fillOrRelease(places.shift(), 1_000 + step, next(2) === 0, brought, ways);
    const { size, reserved } = queue.stats();
    if (size + reserved > queue.capacity) throw new Error(`seed ${seed}: ${size} + ${reserved} in ${queue.capacity}`);
  }
  call.abort();
  await clock.advance(100);
  for (const place of places) place.release();
  queue.fail("end");
  await clock.advance(100);
  same(ways.toSorted(byNumber), brought.toSorted(byNumber));
  const { accepted, taken, undelivered, waitingConsumers, waitingProducers, reserved } = queue.stats();
  same([accepted - taken - undelivered, waitingConsumers, waitingProducers, reserved, clock.timers], [0, 0, 0, 0, 0]);
}

function end(queue: AnyQueue<number>, how: number): void {
  if (how === 0) queue.fail("failed");
  else if (how === 1) queue.close();
}

function fillOrRelease(
  place: Reservation<number> | undefined,
  item: number,
  isFilled: boolean,
  brought: number[],
  ways: number[],
): void {
  if (place === undefined) return;
  if (!isFilled) return place.release();
  brought.push(item);
  if (!place.put(item)) ways.push(item);
}

/** Whole numbers below `count`, the same for the same seed: the generator of Park and Miller. */
function chance(seed: number): (count: number) => number {
  let state = seed * 7_919;
  return (count) => {
    state = (state * 48_271) % 2_147_483_647;
    return state % count;
  };
}

function byNumber(a: number, b: number): number {
  return a - b;
}
