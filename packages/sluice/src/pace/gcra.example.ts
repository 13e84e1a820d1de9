// Five messages a minute for each user, kept in a table of one's own: a restart gives nobody a second burst.
import { gcra, gcraReserve, type GcraLimit } from "sluice";

const limit: GcraLimit = { intervalMs: 12_000, burst: 5 };
const table = new Map<string, number>(); // here a database would be

function send(user: string, now: number): string {
  const { allowed, tat, retryAfterMs } = gcra(table.get(user) ?? -Infinity, now, limit);
  table.set(user, tat);
  return allowed ? "sent" : `not before ${retryAfterMs} ms from now`;
}

for (let message = 1; message <= 6; message += 1) console.log(message, send("ann", 0));

// What must be sent in any case reserves its turn, and is not asked again.
const { tat, waitMs } = gcraReserve(table.get("ann") ?? -Infinity, 0, limit);
table.set("ann", tat);
console.log(`7 goes out in ${waitMs} ms`);
console.log("8", send("ann", 12_000));

// Prints:
// 1 sent
// 2 sent
// 3 sent
// 4 sent
// 5 sent
// 6 not before 12000 ms from now
// 7 goes out in 12000 ms
// 8 not before 12000 ms from now
