// A page is due in 300 ms. Each of its parts may take 250, but none goes on after the page is due, and what needs 100 isn't
// begun when less is left. One policy serves all pages: it asks for the deadline of whoever calls.
import { currentDeadline, DeadlineError, sleep, timeout, withDeadline } from "sluice";
import { VirtualClock } from "sluice/testing";

const clock = new VirtualClock(); // in real life, leave it out
const part = timeout(250, { within: currentDeadline, neededMs: 100, clock });

async function load(name: string, takesMs: number): Promise<void> {
  const before = clock.now();
  const outcome = await part
    .run(({ signal }) => sleep(takesMs, { clock, signal }))
    .then(
      () => "loaded",
      (error: Error) => (error instanceof DeadlineError ? `not begun, ${error.leftMs} ms left` : error.name),
    );
  console.log(`${name}: ${outcome} after ${clock.now() - before} ms`);
}

async function page(...tookMs: readonly number[]): Promise<void> {
  for (const [index, takesMs] of tookMs.entries()) await load(`part ${index + 1}`, takesMs);
}

for (const tookMs of [
  [150, 1_000],
  [220, 10],
]) {
  const done = withDeadline(300, () => page(...tookMs), { clock });
  await clock.runToIdle();
  await done;
}

// Outside of any page there is no deadline to keep.
const alone = load("alone", 1_000);
await clock.runToIdle();
await alone;

// Prints:
// part 1: loaded after 150 ms
// part 2: TimeoutError after 150 ms
// part 1: loaded after 220 ms
// part 2: not begun, 80 ms left after 0 ms
// alone: TimeoutError after 250 ms
