// A service is down for an hour. Each trial that fails makes the next pause twice as long, up to ten minutes, and where
// the service says itself when to come back, nobody comes earlier.
import { CircuitBreaker, growingCooldown } from "sluice";
import { VirtualClock } from "sluice/testing";

const clock = new VirtualClock(); // in real life, leave it out
const breaker = new CircuitBreaker({
  failures: 1,
  cooldown: growingCooldown({ baseMs: 30_000, maxMs: 600_000 }),
  clock,
});

async function failWith(reason: Error): Promise<string> {
  await clock.advance(breaker.retryAfterMs); // the pause is over: a trial
  await breaker.run(() => Promise.reject(reason)).catch(() => {});
  return `${breaker.retryAfterMs / 1_000} s`;
}

const pauses: string[] = [];
for (let trial = 0; trial < 7; trial += 1) pauses.push(await failWith(new Error("connection refused")));
console.log(pauses.join(", "));

// A success starts it over.
await clock.advance(breaker.retryAfterMs);
await breaker.run(() => "works");
console.log(await failWith(new Error("connection refused")));

// What the server asks for counts if it is more, though not above `maxMs`.
const hint = (retryAfterMs: number): Error => Object.assign(new Error("busy"), { status: 503, retryAfterMs });
console.log(await failWith(hint(5_000)), await failWith(hint(300_000)), await failWith(hint(86_400_000)));

// With chance in it, a thousand clients don't all come back in the same second.
const cooldown = growingCooldown({ baseMs: 30_000, jitter: 0.2, random: () => 0.5 });
console.log(cooldown({ openings: 1, outcome: undefined }));

// Prints:
// 30 s, 60 s, 120 s, 240 s, 480 s, 600 s, 600 s
// 30 s
// 60 s 300 s 600 s
// 27000
