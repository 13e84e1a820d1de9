// An import of a file that is too large to hold: lines are read no faster than they are stored, three at a time.
import { setImmediate } from "node:timers/promises";
import { forEachLimit } from "sluice";

let [read, stored, ahead] = [0, 0, 0];

async function* lines(): AsyncGenerator<string> {
  try {
    for (let n = 1; n <= 10_000; n += 1) {
      read = n;
      ahead = Math.max(ahead, read - stored);
      yield n === 9_000 ? "garbage" : `line ${n}`;
    }
  } finally {
    console.log(`the file is closed after ${read} lines`);
  }
}

async function store(line: string): Promise<void> {
  await setImmediate();
  if (line === "garbage") throw new Error(`cannot store ${line}`);
  stored += 1;
}

try {
  await forEachLimit(lines(), 3, store, { onLateError: (error) => console.log("late:", error) });
} catch (error) {
  console.log(error instanceof Error && error.message);
}
console.log(`${stored} stored, never more than ${ahead} read and not stored`);

// Prints:
// the file is closed after 9002 lines
// cannot store garbage
// 8999 stored, never more than 3 read and not stored
