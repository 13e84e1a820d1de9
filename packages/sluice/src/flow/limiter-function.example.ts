// All that asks one provider goes through one limit of two: single calls, and lists, between whose items others get their
// turn.
import { setImmediate } from "node:timers/promises";
import { limiter } from "sluice";

const limit = limiter(2);
let [running, peak] = [0, 0];

async function ask(what: string): Promise<string> {
  running += 1;
  peak = Math.max(peak, running);
  await setImmediate();
  running -= 1;
  console.log(`answers ${what}`);
  return what.toUpperCase();
}

const list = limit.map(["a", "b", "c", "d"], ask);
const single = limit(() => ask("single"));
const urgent = limit(() => ask("urgent"), { priority: 1 });
console.log(await list, await single, await urgent, `at most ${peak} at a time`);

// The numbers, and all else, are behind `limiter`.
const { running: active, waiting: pending } = limit.limiter;
console.log(`${active} running, ${pending} waiting`);
limit.limiter.resize(1);

// What waits can be called off, and is told so.
const first = limit(() => ask("first"));
const second = limit(() => ask("second")).catch((error: Error) => error.name);
limit.limiter.clear();
console.log(await first, await second);

// Prints:
// answers a
// answers b
// answers urgent
// answers single
// answers c
// answers d
// [ 'A', 'B', 'C', 'D' ] SINGLE URGENT at most 2 at a time
// 0 running, 0 waiting
// answers first
// FIRST ClearedError
