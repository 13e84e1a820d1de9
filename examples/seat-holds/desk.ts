// desk.ts FILE KIND HOLD_MS: a process to be killed. It holds seat A1, says so, and when the hold is over begins to tell
// the next in line, says that, and never gets to the end of it.
import { writeSync } from "node:fs";
import { type Kind, openSeatHolds } from "./open.ts";

const [path = "", kind = "sweep", holdMs = "300000"] = process.argv.slice(2);
const holds = await openSeatHolds(kind as Kind, {
  path,
  seats: ["A1"],
  holdMs: Number(holdMs),
  everyMs: 10,
  onFreed: () => {
    say("telling");
    return new Promise(() => {});
  },
});
await holds.hold("A1", "ann");
say("held");

/** At once: what is in a buffer dies with the process. */
function say(what: string): void {
  writeSync(1, `${what}\n`);
}
