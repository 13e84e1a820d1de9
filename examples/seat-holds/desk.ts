// desk.ts FOLDER HOLD_MS KIND…: a process to be killed. For each kind it holds seat A1 of a hall of its own, says so, and
// when the hold is over begins to tell the next in line, says that, and never gets to the end of it.
import { writeSync } from "node:fs";
import { join } from "node:path";
import { type Kind, openSeatHolds } from "./open.ts";

const [folder = "", holdMs = "300000", ...kinds] = process.argv.slice(2);

await Promise.all(
  kinds.map(async (kind) => {
    const holds = await openSeatHolds(kind as Kind, {
      path: join(folder, `${kind}.db`),
      seats: ["A1"],
      holdMs: Number(holdMs),
      everyMs: 10,
      onFreed: () => {
        say("telling");
        return new Promise(() => {});
      },
    });
    holds.hold("A1", "ann");
    say("held");
  }),
);

/** At once: what is in a buffer dies with the process. */
function say(what: string): void {
  writeSync(1, `${what}\n`);
}
