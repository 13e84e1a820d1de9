// A reader that is faster than its writer: the queue makes it wait, and closing lets the writer finish.
import { Queue } from "sluice";

const lines = new Queue<string>(2);

async function read(): Promise<void> {
  for (const line of ["one", "two", "three", "four", "five"]) {
    await lines.put(line);
    console.log(`read ${line}, ${lines.size} in the queue`);
  }
  lines.close();
}

async function write(): Promise<void> {
  for await (const line of lines) console.log(`written ${line}`);
  console.log("the end");
}

await Promise.all([read(), write()]);

// Without waiting: an item now, or none.
const samples = new Queue<number>(3);
for (const sample of [20, 21, 19, 22]) if (!samples.offer(sample)) console.log(`no room for ${sample}`);
console.log(samples.pollBatch(10), samples.poll());

// Several at a time: up to 100, and 50 ms after the first at the latest.
const rows = new Queue<number>(1_000);
const batch = rows.takeBatch(100, { maxWaitMs: 50 });
for (const row of [1, 2, 3]) rows.offer(row);
rows.close();
console.log(await batch);

// Prints:
// read one, 0 in the queue
// read two, 1 in the queue
// written one
// read three, 1 in the queue
// read four, 2 in the queue
// written two
// read five, 2 in the queue
// written three
// written four
// written five
// the end
// no room for 22
// [ 20, 21, 19 ] undefined
// [ 1, 2, 3 ]
