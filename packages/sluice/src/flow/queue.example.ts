// A reader that is faster than its writer: the queue makes it wait, and closing lets the writer finish.
import { Queue, sleep } from "sluice";

const lines = new Queue<string>(2);

async function read(): Promise<void> {
  for (const line of ["one", "two", "three", "four", "five"]) {
    await lines.put(line);
    console.log(`read ${line}, ${lines.size} in the queue`);
  }
  lines.close();
}

async function write(): Promise<void> {
  for await (const line of lines) {
    await sleep(5); // a slow disk
    console.log(`written ${line}`);
  }
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

// Four workers; what one of them fails with ends the queue as well, so that nobody goes on filling it.
const mails = new Queue<string>(10);
for (const to of ["ann", "bob", "nobody"]) await mails.put(to);
const sent = mails.consume(
  (to) => {
    if (to === "nobody") throw new Error("no such address");
    console.log(`mail to ${to}`);
  },
  { workers: 4 },
);
await sent.catch((error: Error) => console.log(`stopped: ${error.message}`));
await mails.put("cleo").catch((error: Error) => console.log(`not put: ${error.message}`));

// Only the latest counts: what it takes the place of is handed back.
const position = new Queue<number>(1, {
  whenFull: "drop-oldest",
  onUndelivered: (old) => console.log(`${old} is out of date`),
});
position.offer(1);
position.offer(2);
console.log(position.poll());

// A place first, and then the work: nothing is made for which there is no room.
const frames = new Queue<string>(1);
const place = await frames.reserve();
console.log(frames.offer("another"), place.put("a frame that was dear to make"));

// Prints:
// read one, 0 in the queue
// read two, 1 in the queue
// read three, 2 in the queue
// written one
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
// mail to ann
// mail to bob
// stopped: no such address
// not put: no such address
// 1 is out of date
// 2
// false true
