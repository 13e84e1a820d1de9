import { expect, it } from "vitest";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { RateLimiter } from "./rate-limiter.ts";

it("lets no newcomer in before whoever waits, though there are tokens for both and the timer has yet to fire", async () => {
  const virtual = new VirtualClock();
  let lateMs = 0;
  const clock = { ...realOf(virtual), now: () => virtual.now() + lateMs };
  const limiter = new RateLimiter({ count: 10, perMs: 1_000, burst: 3, clock });
  expect(limiter.tryTake(3)).toBe(true);
  const granted: string[] = [];
  const waits = limiter.take().then(() => granted.push("waited"));
  lateMs = 300; // a busy event loop
  expect(limiter.tryTake()).toBe(false);
  const comes = limiter.take().then(() => granted.push("came"));
  await virtual.advance(100);
  await Promise.all([waits, comes]);
  expect(granted).toEqual(["waited", "came"]);
});

function realOf(clock: VirtualClock): Pick<VirtualClock, "wallNow" | "setTimer" | "track"> {
  return {
    wallNow: () => clock.wallNow(),
    setTimer: (delayMs, task, options) => clock.setTimer(delayMs, task, options),
    track: (work) => clock.track(work),
  };
}
