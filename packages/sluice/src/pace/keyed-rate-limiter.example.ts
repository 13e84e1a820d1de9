// Each user may be sent two messages at once, and one more every half second.
import { gcra, KeyedRateLimiter } from "sluice";

const limiter = new KeyedRateLimiter({ count: 2, perMs: 1_000, burst: 2 });

for (const user of ["ada", "ada", "ada", "bob"]) console.log(user, limiter.tryTake(user) ? "sent" : "held back");

// Whoever would rather wait than be turned away gives a limit to the wait.
await limiter.run("ada", () => console.log("ada sent, after a wait"), { timeoutMs: 5_000 });

// A limit that must survive a restart keeps its one number in a table, and here is what the table's owner does with it.
const limit = { intervalMs: 12_000, burst: 5 };
const [tat, now] = [1_000_060_000, 1_000_000_000];
console.log(gcra(tat, now, limit));

// Prints:
// ada sent
// ada sent
// ada held back
// bob sent
// ada sent, after a wait
// { allowed: false, tat: 1000060000, retryAfterMs: 12000 }
