// A server allows less than we were told, and says so.
import { AdaptiveRate, HttpStatusError, RateLimiter } from "sluice";

const limiter = new RateLimiter({ count: 100, perMs: 1_000, burst: 10 });
const rate = new AdaptiveRate(limiter, { perMs: 1_000, maxCount: 100, recoverMs: 50 });

function send(answer: number): Promise<number> {
  const response = new Response(null, { status: answer });
  return answer === 429 ? Promise.reject(new HttpStatusError(response, 100)) : Promise.resolve(answer);
}

const answers = await Promise.allSettled([200, 429, 429].map((answer) => rate.run(() => send(answer))));
console.log(
  answers.map(({ status }) => status),
  `${rate.count} a second from now on`,
);
console.log("paused as it asked:", !limiter.tryTake());

await rate.run(() => send(200)); // after the pause
console.log(`${rate.count} a second, since that was taken`);

// Prints:
// [ 'fulfilled', 'rejected', 'rejected' ] 50 a second from now on
// paused as it asked: true
// 60 a second, since that was taken
