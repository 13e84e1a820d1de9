// Loaded into the dispatcher before it starts: kills the process at the n-th time it enters a phase. Aimed from inside,
// because a kill from outside hits the phases by luck, and the short ones hardly ever.
import { subscribe } from "node:diagnostics_channel";

interface Aim {
  readonly phase: string;
  readonly nth: number;
  readonly delayMs: number;
}

const { phase, nth, delayMs } = JSON.parse(process.env["KILL_AT"] ?? "{}") as Aim;
let entered = 0;

subscribe("sluice.dispatcher", (message) => {
  if ((message as { phase: string }).phase !== phase) return;
  entered += 1;
  if (entered !== nth) return;
  if (delayMs === 0) kill();
  else setTimeout(kill, delayMs);
});

function kill(): void {
  process.kill(process.pid, "SIGKILL");
}
