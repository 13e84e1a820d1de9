// A page is better with yesterday's prices than without any; but not when its reader has left.
import { fallback, timeout } from "sluice";

const yesterday = new Map([["tea", 3]]);
const orYesterday = fallback(() => yesterday);
const quick = timeout(20);

async function prices(source: (signal: AbortSignal) => Promise<Map<string, number>>): Promise<void> {
  const found = await orYesterday.run(() => quick.run(({ signal }) => source(signal)));
  console.log(found.get("tea"));
}

await prices(() => Promise.resolve(new Map([["tea", 4]])));
await prices(() => Promise.reject(new Error("no prices")));
await prices(() => new Promise(() => {}));
console.log(orYesterday.stats());

// Prints:
// 4
// 3
// 3
// { calls: 3, fallbacks: 2, failed: 0 }
