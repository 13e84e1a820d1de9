// Prices for everybody: an archive that must miss nothing and so holds back the source, a screen that wants the latest,
// and a newcomer who gets the last price first.
import { Broadcast } from "sluice";

const prices = new Broadcast<number>({ replay: 1 });
const archive = prices.subscribe({ capacity: 2 });
const screen = prices.subscribe({ capacity: 1, whenFull: "drop-oldest" });

async function keep(): Promise<void> {
  const kept: number[] = [];
  for await (const price of archive) kept.push(price);
  console.log("kept", kept);
}

const keeping = keep();
for (const price of [10, 11, 12, 13]) await prices.publish(price);

console.log("screen", await screen.take(), "missed", screen.stats().missed);

const newcomer = prices.subscribe({ capacity: 1 });
console.log("newcomer", newcomer.poll());
newcomer.close();

// With nobody in its way, `offer` needs no await.
console.log(prices.offer(14), prices.stats().subscribers);
prices.close();
await keeping;

// Prints:
// screen 13 missed 3
// newcomer 13
// true 2
// kept [ 10, 11, 12, 13, 14 ]
