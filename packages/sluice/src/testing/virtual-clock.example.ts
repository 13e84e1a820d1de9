// A test of code that takes no clock and would take a week: it polls once a day, by globals.
import { VirtualClock } from "sluice/testing";

async function waitForAnswer(isThere: () => boolean): Promise<string> {
  const from = Date.now();
  while (!isThere()) await new Promise((resolve) => void setTimeout(resolve, 86_400_000));
  return `answered after ${(Date.now() - from) / 86_400_000} days`;
}

const clock = new VirtualClock({ wallStartAt: Date.UTC(2030, 0, 1) });
{
  using _ = clock.installGlobals();
  let asked = 0;
  const answer = waitForAnswer(() => (asked += 1) === 8);
  await clock.runToIdle();
  console.log(await answer, "on", new Date().toISOString().slice(0, 10));
}
console.log(setTimeout.name, "is the runtime's again, and", clock.timers, "timers are left");

// Prints:
// answered after 7 days on 2030-01-08
// setTimeout is the runtime's again, and 0 timers are left
