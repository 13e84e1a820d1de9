// A nightly check of all shops, two at a time. One that is down is no reason to leave the others out, and what is known
// of each stands in its place.
import { setImmediate } from "node:timers/promises";
import { mapLimitSettled } from "sluice";

const shops = ["Bern", "Basel", "Chur", "Genf"];

async function check(shop: string): Promise<string> {
  await setImmediate();
  if (shop === "Basel") throw new Error("no answer");
  return "open";
}

const outcomes = await mapLimitSettled(shops, 2, check);
for (const [index, outcome] of outcomes.entries())
  console.log(shops[index], outcome.status === "fulfilled" ? outcome.value : `failed: ${String(outcome.reason)}`);

// The second round is for those that failed.
const failed = shops.filter((_, index) => outcomes[index]?.status === "rejected");
const [again] = await mapLimitSettled(failed, 2, () => "open after all");
console.log(failed, again);

// Only the end of all rejects: who aborts waits for no shop, and gets no part of the answer.
const night = new AbortController();
const cut = mapLimitSettled(
  shops,
  2,
  (shop, { signal }) => {
    signal.addEventListener("abort", () => console.log(`${shop} is told to stop`));
    return new Promise<never>(() => {}); // hangs
  },
  { signal: night.signal },
);
night.abort(new Error("it is morning"));
await cut.catch((error: Error) => console.log(error.message));

// Prints:
// Bern open
// Basel failed: Error: no answer
// Chur open
// Genf open
// [ 'Basel' ] { status: 'fulfilled', value: 'open after all' }
// Bern is told to stop
// Basel is told to stop
// it is morning
