// Ten pages, three requests at a time: results in order, or each with its own outcome, or one by one as they come.
import { forEachLimit, mapLimit, mapLimitSettled, mapStream } from "sluice";

const pages = Array.from({ length: 10 }, (_, index) => `page ${index + 1}`);
let [running, peak] = [0, 0];

async function load(page: string): Promise<number> {
  running += 1;
  peak = Math.max(peak, running);
  await new Promise((resolve) => setImmediate(resolve));
  running -= 1;
  if (page === "page 4") throw new Error(`${page} is gone`);
  return page.length;
}

const lengths = await mapLimit(pages.slice(4), 3, load);
console.log(lengths, "at most", peak, "at a time");

// The first error stops the rest: `signal` ends what runs, and nothing further starts.
try {
  await mapLimit(pages, 3, (page, { signal }) => (signal.aborted ? 0 : load(page)));
} catch (error) {
  console.log("stopped:", (error as Error).message);
}

// Where one failure is no reason to stop:
const outcomes = await mapLimitSettled(pages, 3, load);
console.log(outcomes.filter(({ status }) => status === "fulfilled").length, "of", outcomes.length, "loaded");

// As they come, no faster than they are read; leaving the loop ends the rest.
for await (const length of mapStream(pages, 3, load)) {
  console.log("read", length);
  break;
}

// For the effect only, with any source, also an endless one.
async function* ids(): AsyncGenerator<number> {
  for (let id = 1; id <= 1_000; id += 1) yield id;
}
let sum = 0;
await forEachLimit(ids(), 8, (id) => void (sum += id));
console.log("sum", sum);

// Prints:
// [ 6, 6, 6, 6, 6, 7 ] at most 3 at a time
// stopped: page 4 is gone
// 9 of 10 loaded
// read 6
// sum 500500
