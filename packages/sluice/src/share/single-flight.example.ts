// A hot key expires, and three requests miss it at once: one query answers them. One of the three gives up meanwhile.
import { singleFlight } from "sluice";

let queries = 0;

const prices = singleFlight(async (item: string) => {
  queries += 1;
  await Promise.resolve(); // a database would be asked here, with the load's `signal`
  return `${item} costs ${item.length} euros`;
});

const gone = new AbortController();
const requests = [prices.load("tea", gone), prices.load("tea"), prices.load("tea")];
console.log(prices.stats().waiters, "wait");
gone.abort("the client has left");

for (const answer of await Promise.allSettled(requests))
  console.log(answer.status === "fulfilled" ? answer.value : answer.reason);
console.log(`${queries} query, in flight: ${prices.has("tea")}`);

// Prints:
// 3 wait
// the client has left
// tea costs 3 euros
// tea costs 3 euros
// 1 query, in flight: false
