/** Runs `desk.ts` in a process of its own, and kills it when it has said of each kind what it is to be killed after. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { Kind } from "./open.ts";

const DESK = fileURLToPath(new URL("desk.ts", import.meta.url));

/** Each kind leaves the file of its name in `folder`. */
export async function killDesk(
  folder: string,
  holdMs: number,
  kinds: readonly Kind[],
  after: "held" | "telling",
): Promise<void> {
  const desk = spawn(process.execPath, ["--conditions=@sluice/source", DESK, folder, String(holdMs), ...kinds], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = once(desk, "exit");
  let left = kinds.length;
  for await (const line of createInterface(desk.stdout)) {
    if (line === after) left -= 1;
    if (left === 0) desk.kill("SIGKILL");
  }
  const [code, signal] = (await ended) as [number | null, string | null];
  if (signal !== "SIGKILL")
    throw new Error(`the desk ended by itself, with ${code ?? signal}, before it said ${after}`);
}
