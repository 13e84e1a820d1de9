// A service that logs 400 requests while its collector hangs, another ten when it is well again, and as many when it is
// dead for good.
import { Collector } from "./collector.ts";
import { LogShipper } from "./log-shipping.ts";
import { postTo } from "./post.ts";
import { startService } from "./service.ts";

const collector = await Collector.start();
const send = postTo(collector.url, { source: crypto.randomUUID(), attemptTimeoutMs: 10_000 });
const logs = new LogShipper(send, { capacity: 100, maxBatch: 50, maxWaitMs: 20 });
const { url, stopping } = await startService(logs, { signals: ["SIGTERM", "SIGINT"], flushMs: 100 });

collector.mood = "hung";
for (let number = 1; number <= 50; number += 1) logs.log(`start ${number}`);
await collector.until(() => collector.requests === 1);
console.log(`the collector hangs; ${await ask(400)} of 400 requests are answered`);
console.log("waiting and lost:", logs.stats().waiting, logs.stats().lost);

collector.mood = "fine";
await collector.until(() => collector.messages.length === 150);
console.log(
  "it is well again and has batches of",
  collector.batches.join(", "),
  "and knows of",
  collector.lost,
  "lost",
);

await ask(10);
await collector.until(() => collector.messages.length === 160);
console.log("and the next ten");

collector.mood = "busy";
console.log(`the collector is dead; ${await ask(10)} of 10 requests are answered`);
process.emit("SIGTERM", "SIGTERM"); // as the platform would
const { by, targets } = await stopping.finished;
await logs.stop();
console.log(`ended by ${by}:`, targets.map(({ name, outcome }) => `${name} ${outcome}`).join(", "));
console.log("shipped and lost:", logs.stats().shipped, logs.stats().lost, "of", 50 + 400 + 10 + 10);
await collector.stop();

/** How many of so many requests the service answers. */
async function ask(count: number): Promise<number> {
  let answered = 0;
  for (let number = 1; number <= count; number += 1) {
    const response = await fetch(`${url}/${number}`);
    await response.text();
    if (response.ok) answered += 1;
  }
  return answered;
}

// Prints:
// the collector hangs; 400 of 400 requests are answered
// waiting and lost: 100 300
// it is well again and has batches of 50, 50, 50 and knows of 300 lost
// and the next ten
// the collector is dead; 10 of 10 requests are answered
// ended by SIGTERM: http stopped, logs inside
// shipped and lost: 160 310 of 470
