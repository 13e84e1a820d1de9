/** Runs `desk.ts` in a process of its own, and kills it when it has said what it is to be killed after. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { Kind } from "./open.ts";

const DESK = fileURLToPath(new URL("desk.ts", import.meta.url));

export async function killDesk(path: string, kind: Kind, holdMs: number, after: "held" | "telling"): Promise<void> {
  const desk = spawn(process.execPath, ["--conditions=@sluice/source", DESK, path, kind, String(holdMs)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = once(desk, "exit");
  for await (const line of createInterface(desk.stdout)) if (line === after) desk.kill("SIGKILL");
  const [code, signal] = (await ended) as [number | null, string | null];
  if (signal !== "SIGKILL")
    throw new Error(`the desk ended by itself, with ${code ?? signal}, before it said ${after}`);
}
