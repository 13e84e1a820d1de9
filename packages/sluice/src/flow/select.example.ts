// A worker that does jobs, hears of new settings between two of them, and says when it has nothing to do.
import { elapsing, Queue, select, taking, trySelect } from "sluice";

const jobs = new Queue<string>(10);
const settings = new Queue<{ readonly verbose: boolean }>(1);

async function work(): Promise<void> {
  let verbose = false;
  for (;;) {
    // Settings come first when both are there; what doesn't win stays in its queue.
    const clauses = { settings: taking(settings), job: taking(jobs), idle: elapsing(20) };
    const next = await select(clauses, { biased: true });
    if (next.key === "settings") verbose = next.value.verbose;
    else if (next.key === "job") console.log(verbose ? `done with ${next.value}, ${jobs.size} left` : next.value);
    else return console.log("nothing to do");
  }
}

await jobs.put("first");
await jobs.put("second");
await settings.put({ verbose: true });
await work();

// At once or not at all.
console.log(trySelect({ job: taking(jobs), settings: taking(settings) }) ?? "neither");

// Prints:
// done with first, 1 left
// done with second, 0 left
// nothing to do
// neither
