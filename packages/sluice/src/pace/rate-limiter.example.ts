// A provider takes two requests at once, and one more every tenth of a second.
import { RateLimiter } from "sluice";

const provider = new RateLimiter({ count: 10, perMs: 1_000, burst: 2 });

console.log([1, 2, 3].map(() => (provider.tryTake() ? "sent" : "held back")));

// Whoever would rather wait than be turned away gives a limit to the wait, and isn't kept waiting in vain.
await provider.run(() => console.log("3 sent, after a wait"), { timeoutMs: 5_000 });
await provider.take({ cost: 2, timeoutMs: 1 }).catch((error: Error) => console.log(`4 not sent: ${error.name}`));

// A place in line that may be given up.
const place = provider.reserve();
console.log("5 sent soon:", place.waitMs <= 100);
place.cancel();

// The provider has said 429, with a Retry-After, and what it allows from now on.
provider.pauseFor(50);
provider.setRate({ count: 5, perMs: 1_000 });
console.log("6", provider.tryTake() ? "sent" : "held back");

// Prints:
// [ 'sent', 'sent', 'held back' ]
// 3 sent, after a wait
// 4 not sent: RateLimitedError
// 5 sent soon: true
// 6 held back
