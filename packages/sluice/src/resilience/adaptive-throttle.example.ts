// A client asks a recommendation service for 20 books a second, and the service has room for 5. Soon the client no longer
// asks for most of what would be refused; once the service has room again, it goes on as before.
import { AdaptiveThrottle, OverloadedError } from "sluice";
import { seededRandom, VirtualClock } from "sluice/testing";

const clock = new VirtualClock(); // in real life, leave it and `random` out
const throttle = new AdaptiveThrottle({ windowMs: 12_000, random: seededRandom(1), clock });

let room = 5;
let left = room;
let asked = 0;
function recommend(): string {
  asked += 1;
  left -= 1;
  if (left < 0) throw Object.assign(new Error("too many requests"), { status: 429 });
  return "a book";
}

async function ask(seconds: number): Promise<string> {
  const before = asked;
  let refused = 0;
  for (let second = 0; second < seconds; second += 1) {
    left = room;
    for (let n = 0; n < 20; n += 1)
      await throttle.run(recommend).catch((error: unknown) => (refused += Number(error instanceof OverloadedError)));
    await clock.advance(1_000);
  }
  return `${asked - before} asked, ${refused} not even that`;
}

console.log("little room:", await ask(60));
room = 20;
console.log("it comes back:", await ask(30));
console.log("room again:", await ask(60));

// Prints:
// little room: 643 asked, 557 not even that
// it comes back: 562 asked, 38 not even that
// room again: 1200 asked, 0 not even that
