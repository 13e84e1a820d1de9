// A browser gives the shop a second, the shop asks the stock, and that asks a warehouse. Each tells the next how long it
// still has, less the way there and back; who has no time left doesn't even begin.
import { Deadline, DEADLINE_HEADER, deadlineFromHeaders, deadlineHeaders, type HeaderSource, sleep } from "sluice";
import { VirtualClock } from "sluice/testing";

const clock = new VirtualClock(); // in real life, leave it out

/** A service that works for so long before it asks the next. */
async function serve(name: string, worksMs: number, headers: HeaderSource, next?: Service): Promise<string> {
  using deadline = deadlineFromHeaders(headers, { maxMs: 5_000, clock });
  console.log(`${name} has ${deadline.leftMs} ms`);
  if (deadline.expired) return `${name}: too late`;
  await sleep(worksMs, { clock, signal: deadline.signal });
  return next === undefined ? `${name}: done` : await next(deadlineHeaders(deadline, { reserveMs: 20 }));
}

type Service = (headers: HeaderSource) => Promise<string>;
const warehouse: Service = (headers) => serve("warehouse", 100, headers);
const stock: Service = (headers) => serve("stock", 300, headers, warehouse);
const shop: Service = (headers) => serve("shop", 200, headers, stock);

async function ask(headers: HeaderSource): Promise<void> {
  const answer = shop(headers).catch(String);
  await clock.runToIdle();
  console.log(await answer);
}

await ask(deadlineHeaders(Deadline.after(1_000, { clock })));
await ask(new Headers({ [DEADLINE_HEADER]: "520" }));
await ask(new Headers({ [DEADLINE_HEADER]: "250" }));

// Strangers send what they like: nobody gets more than `maxMs`, and what is no number sets nothing.
for (const value of ["86400000", "soon", "-3"])
  console.log(value, deadlineFromHeaders({ [DEADLINE_HEADER]: value }, { maxMs: 5_000, clock }).leftMs);

// A deadline that never comes sends no header.
console.log(deadlineHeaders(Deadline.after(Infinity)));

// Prints:
// shop has 1000 ms
// stock has 780 ms
// warehouse has 460 ms
// warehouse: done
// shop has 520 ms
// stock has 300 ms
// warehouse has 0 ms
// warehouse: too late
// shop has 250 ms
// stock has 30 ms
// TimeoutError: timed out after 30 ms
// 86400000 5000
// soon 5000
// -3 0
// {}
