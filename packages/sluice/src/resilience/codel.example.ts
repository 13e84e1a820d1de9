// One worker that takes 10 ms a call. It answers a burst of nine whole; but when the line has been standing for long, to
// wait in it is to be too late, so that the newest are answered in time and the rest are told at once.
import { AdaptiveLimiter, aimd, codel, OverloadedError, sleep } from "sluice";
import { VirtualClock } from "sluice/testing";

const clock = new VirtualClock(); // in real life, leave it out
const worker = new AdaptiveLimiter(aimd(), {
  initialConcurrency: 1,
  maxConcurrency: 1,
  discipline: codel({ targetMs: 15, intervalMs: 100 }),
  clock,
});

async function ask(): Promise<number | undefined> {
  const askedAt = clock.now();
  try {
    await worker.run(() => sleep(10, { clock }));
    return clock.now() - askedAt;
  } catch (error) {
    if (!(error instanceof OverloadedError)) throw error;
    return undefined; // turned away: time to show the page without it
  }
}

async function tell(what: string, asked: readonly Promise<number | undefined>[]): Promise<void> {
  await clock.runToIdle();
  const tookMs = (await Promise.all(asked)).filter((ms) => ms !== undefined);
  console.log(`${what}: ${tookMs.length} of ${asked.length} answered, within ${Math.max(...tookMs)} ms`);
}

await tell("a burst", Array.from({ length: 9 }, ask));

// Twice as many as it can answer, for two seconds.
const rush: Promise<number | undefined>[] = [];
for (let ms = 0; ms < 2_000; ms += 5) {
  rush.push(ask());
  await clock.advance(5);
}
await tell("the first 100 ms", rush.slice(0, 20));
await tell("the rest", rush.slice(60));
console.log(worker.stats().expired, "had waited for too long");

// Prints:
// a burst: 9 of 9 answered, within 90 ms
// the first 100 ms: 12 of 20 answered, within 65 ms
// the rest: 170 of 340 answered, within 15 ms
// 199 had waited for too long
