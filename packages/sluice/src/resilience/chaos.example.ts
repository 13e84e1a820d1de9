// Does the retry really hide a payment service that fails now and then? Let a third of the calls fail, and see.
import { chaosFault, compose, retry } from "sluice";
import { seededRandom, VirtualClock } from "sluice/testing";

const clock = new VirtualClock(); // in real life, leave it out
const outage = chaosFault(() => Object.assign(new Error("unavailable"), { status: 503 }), {
  rate: 1 / 3,
  random: seededRandom(3),
});
const payments = compose(retry({ retries: 3, clock, random: seededRandom(5) }), outage);

async function payAll(): Promise<string> {
  const paid = Array.from({ length: 100 }, (_, id) => payments.run(() => `receipt ${id}`));
  const outcomes = Promise.allSettled(paid);
  await clock.runToIdle();
  const { length } = (await outcomes).filter(({ status }) => status === "fulfilled");
  return `${length} of 100 paid, ${outage.stats().injected} attempts failed so far`;
}

console.log("as it is:", await payAll());
outage.enabled = true;
console.log("a third fails:", await payAll());
outage.rate = 0.9;
console.log("nearly all fail:", await payAll());

// Prints:
// as it is: 100 of 100 paid, 0 attempts failed so far
// a third fails: 97 of 100 paid, 41 attempts failed so far
// nearly all fail: 36 of 100 paid, 344 attempts failed so far
