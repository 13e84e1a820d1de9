// Ways to wait for the next attempt, at the longest that their jitter allows.
import {
  type Backoff,
  constantBackoff,
  decorrelatedJitter,
  equalJitter,
  exponentialBackoff,
  linearBackoff,
} from "sluice";

function waits(backoff: Backoff, chance: number): string {
  let previousMs = 0;
  const found = [1, 2, 3, 4].map((attempt) => {
    previousMs = backoff(attempt, { previousMs, reason: undefined, random: () => chance });
    return previousMs;
  });
  return found.join(" ");
}

console.log("exponential", waits(exponentialBackoff({ baseMs: 100, maxMs: 500 }), 1));
console.log("linear", waits(linearBackoff({ baseMs: 100 }), 1));
console.log("constant", waits(constantBackoff(250), 1));
console.log(
  "equal jitter",
  waits(equalJitter(exponentialBackoff()), 0),
  "to",
  waits(equalJitter(exponentialBackoff()), 1),
);
console.log("decorrelated", waits(decorrelatedJitter({ baseMs: 100, maxMs: 1_000 }), 1));

// One of one's own, for a queue that says how long its line is: 50 ms for each that waits there.
const byLength: Backoff = (attempt, { reason }) => 50 * ((reason as { inLine?: number }).inLine ?? attempt);
console.log("one's own", byLength(1, { previousMs: 0, reason: { inLine: 7 }, random: Math.random }));

// Prints:
// exponential 100 200 400 500
// linear 100 200 300 400
// constant 250 250 250 250
// equal jitter 50 100 200 400 to 100 200 400 800
// decorrelated 100 300 900 1000
// one's own 350
