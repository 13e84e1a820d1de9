// How long is too long for an answer? Longer than 95 of 100 answers take, measured as they come. It follows a service that
// gets slower, so that few calls are hedged all the same, and forgets what is long past.
import { hedge, LatencyPercentile, sleep } from "sluice";
import { VirtualClock } from "sluice/testing";

const clock = new VirtualClock(); // in real life, leave it out
const usual = new LatencyPercentile(95, { minSamples: 20, initialMs: 500, minMs: 5, window: 200 });
const search = hedge({ hedgeAfterMs: usual, clock });

let slowness = 1;
async function ask(n: number): Promise<void> {
  const answer = search.run(({ signal }) => sleep(slowness * (1 + (n % 100)), { clock, signal }));
  await clock.runToIdle();
  await answer;
}

async function askAll(what: string): Promise<void> {
  const before = search.stats().extra;
  for (let n = 0; n < 1_000; n += 1) await ask(n * 37); // from 1 to 100 ms, in no order
  console.log(`${what}: after ${Math.round(usual.ms)} ms, ${search.stats().extra - before} extra of 1000`);
}

console.log(`knows ${usual.samples}, so that it says ${usual.ms} ms`);
await askAll("as usual");
slowness = 3;
await askAll("three times as slow");
slowness = 1;
await askAll("as usual again");

// By itself it is of use for a timeout, or for a number on a page.
const median = new LatencyPercentile(50, { minSamples: 1 });
for (const ms of [10, 11, 12, 500, 9]) median.record(ms);
console.log(`half of ${median.samples} take less than ${median.ms.toFixed(1)} ms`);

// Prints:
// knows 0, so that it says 500 ms
// as usual: after 97 ms, 30 extra of 1000
// three times as slow: after 299 ms, 68 extra of 1000
// as usual again: after 97 ms, 1 extra of 1000
// half of 5 take less than 11.4 ms
