// Ten thousand visitors wait for one seat, none of them for longer than a minute. By the system clock that is a native timer
// for each; by this one, a single timer sees to them all.
import { Semaphore, sleep, systemClock, wheelClock } from "sluice";

function nativeTimers(): number {
  return process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length;
}

for (const [name, clock] of Object.entries({ systemClock, wheelClock })) {
  const seat = new Semaphore(1, { clock });
  const first = await seat.acquire();
  const visits = Array.from({ length: 10_000 }, () => seat.run(() => {}, { timeoutMs: 60_000 }));
  console.log(`${name}: ${seat.waiting} wait, timers: ${nativeTimers()}`);
  first.release();
  await Promise.all(visits);
  console.log(`${name}: ${seat.waiting} wait, timers: ${nativeTimers()}`);
}

// It keeps time as the other does.
const woken: string[] = [];
async function wake(who: string, ms: number): Promise<void> {
  await sleep(ms, { clock: wheelClock });
  woken.push(who);
}
await Promise.all([wake("late", 30), wake("early", 5)]);
console.log(woken.join(", "));

// Prints:
// systemClock: 10000 wait, timers: 10000
// systemClock: 0 wait, timers: 0
// wheelClock: 10000 wait, timers: 1
// wheelClock: 0 wait, timers: 0
// early, late
