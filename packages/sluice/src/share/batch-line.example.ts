// Log lines are shipped ten at a time, or after half a second, by one call after the other. At the end nothing may be
// lost unnoticed: close sends what waits, and tells which lines were not delivered.
import { batch, BatchLine } from "sluice";

const line = new BatchLine({ windowMs: 500, maxParallel: 1, maxWaiting: 100 });
let isUp = true;

const ship = batch<string, boolean>(
  async (lines) => {
    if (!isUp) throw new Error("the collector is down");
    console.log(`shipped ${lines.length}`);
    return lines.map(() => true);
  },
  { line, maxSize: 10 },
);

const shipped = Array.from({ length: 10 }, (_, n) => ship.load(`line ${n}`));
await Promise.all(shipped);

isUp = false;
for (const text of ["one", "two"]) ship.load(text).catch(() => {}); // close tells
console.log(line.stats().waitingKeys, "wait");
console.log("lost:", await line.close());

// Prints:
// shipped 10
// 2 wait
// lost: [ 'one', 'two' ]
