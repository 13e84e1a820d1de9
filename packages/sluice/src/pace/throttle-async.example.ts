// Where a courier is, as often as anybody asks, from a service that may be asked once in a second: who asks at another time
// gets the next answer.
import { throttleAsync } from "sluice";
import { VirtualClock } from "sluice/testing";

const clock = new VirtualClock(); // in real life, leave it out
const day = new AbortController();
let questions = 0;

const locate = throttleAsync(
  async (courier: string) => {
    questions += 1;
    return `${courier} at ${clock.now()} ms`;
  },
  1_000,
  { signal: day.signal, clock },
);

console.log(await locate("Dan"));

await clock.advance(200);
const waiting = [locate("Dan"), locate("Dan"), locate("Eve")]; // the last one's arguments count
console.log(locate.pending() ? "they wait" : "nobody waits");
await clock.advance(800);
console.log(await Promise.all(waiting), `${questions} questions`);

// Without the answer that is still to come: the latest there is, if it is less than a second old.
const recent = throttleAsync(async () => `as of ${clock.now()} ms`, 1_000, { trailing: false, clock });
console.log(await recent());
await clock.advance(400);
console.log(await recent());

// The day ends: nothing more is asked, and whoever waits is told.
const last = locate("Dan");
day.abort(new Error("the courier has gone home"));
await last.catch((error: Error) => console.log(error.message));
await locate("Dan").catch((error: Error) => console.log(error.message));

// Prints:
// Dan at 0 ms
// they wait
// [ 'Eve at 1000 ms', 'Eve at 1000 ms', 'Eve at 1000 ms' ] 2 questions
// as of 1000 ms
// as of 1000 ms
// the courier has gone home
// the courier has gone home
