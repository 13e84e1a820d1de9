// Import of a file: lines are parsed one by one, prices looked up four at a time, and batches of two written. What can't
// be parsed is set aside, and the rest goes on.
import { pipeline } from "sluice";

const lines = ["apple 3", "pear 2", "???", "fig 7", "plum 5"];

const prices = pipeline(lines, {
  name: "import",
  onDeadLetter: ({ stage, item, error }) =>
    console.log(`${stage} set aside ${String(item)}: ${(error as Error).message}`),
})
  .stage("parse", parse, { buffer: 8, onError: "dead-letter" })
  .stage("price", async ({ fruit, count }) => `${fruit}: ${count * 10}`, { buffer: 8, workers: 4, ordered: true })
  .whole("batch", inPairs, { buffer: 2 });

for await (const batch of prices) console.log("write", batch);

for (const { name, taken, succeeded, deadLettered } of prices.stages()) {
  console.log(`${name}: ${taken} taken, ${succeeded} done, ${deadLettered} set aside`);
}
console.log("buffers for", prices.stats().capacity);

function parse(line: string): { fruit: string; count: number } {
  const [fruit = "", count] = line.split(" ");
  if (count === undefined) throw new Error("no count");
  return { fruit, count: Number(count) };
}

async function* inPairs(items: AsyncIterable<string>): AsyncGenerator<string[]> {
  let pair: string[] = [];
  for await (const item of items) {
    if (pair.push(item) < 2) continue;
    yield pair;
    pair = [];
  }
  if (pair.length > 0) yield pair;
}

// Prints:
// parse set aside ???: no count
// write [ 'apple: 30', 'pear: 20' ]
// write [ 'fig: 70', 'plum: 50' ]
// parse: 5 taken, 4 done, 1 set aside
// price: 4 taken, 4 done, 0 set aside
// batch: 4 taken, 2 done, 0 set aside
// buffers for 18
