// Each user may ask twice at once, all together three times: who is refused by one limit is charged by neither.
import { KeyedRateLimiter, RateLimiter, takeAll, tryTakeAll } from "sluice";

const users = new KeyedRateLimiter({ count: 2, perMs: 200, burst: 2 });
const everybody = new RateLimiter({ count: 3, perMs: 60_000, burst: 3 });

const charge = (key: string) => [{ limiter: users, key }, { limiter: everybody }];

console.log(["ann", "ann", "ann", "bob", "bob"].map((user) => tryTakeAll(charge(user))));
console.log("bob has", users.tryTake("bob") ? "one left" : "none left", "of his own");

// Whoever waits is told at once if it would be in vain.
await takeAll(charge("ann"), { timeoutMs: 1_000 }).catch((error: Error) => console.log(error.name));

// Prints:
// [ true, true, false, true, false ]
// bob has one left of his own
// RateLimitedError
