// A search engine that answers in 10 ms as long as no more than 20 queries run at once. Nobody tells us so: the limit is
// found by how long queries take. Then more come than it can answer, and those that matter least go without.
import { AdaptiveLimiter, codel, gradient, shedByCriticality, sleep } from "sluice";
import { VirtualClock } from "sluice/testing";

const clock = new VirtualClock(); // in real life, leave it out
const search = new AdaptiveLimiter(gradient({ tolerance: 1.2 }), {
  initialConcurrency: 100,
  discipline: codel({ targetMs: 20 }),
  shed: shedByCriticality(),
  clock,
});

let running = 0;
async function query(): Promise<void> {
  running += 1;
  await sleep(10 * Math.max(1, running / 20), { clock });
  running -= 1;
}

const answered = { critical: 0, normal: 0, sheddable: 0 };
for (let ms = 0; ms < 20_000; ms += 1) {
  const criticality = (["critical", "normal", "normal", "sheddable"] as const)[ms % 4] ?? "normal";
  const three = [1, 2, 3].map(() => search.run(query, { criticality })); // half as many again as can be answered
  for (const run of three) run.then(() => (answered[criticality] += 1)).catch(() => {});
  await clock.advance(1);
}

const { concurrency, latencyMs } = search.stats();
console.log(`limit between 20 and 35: ${concurrency >= 20 && concurrency <= 35}`);
console.log(`queries take less than 20 ms: ${latencyMs < 20}`);
console.log(`critical queries answered: ${answered.critical} of 15000`);
console.log(`normal more than sheddable: ${answered.normal / 2 > answered.sheddable}`);

// Prints:
// limit between 20 and 35: true
// queries take less than 20 ms: true
// critical queries answered: 14987 of 15000
// normal more than sheddable: true
