/** What the tests of seat holds share: folders and processes that end with the test. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { killDesk } from "./killed-desk.ts";
import type { Kind } from "./open.ts";

/** What is to be closed after the test, the last first. */
export const opened: (() => unknown)[] = [];

export async function cleanUp(): Promise<void> {
  for (const close of opened.splice(0).toReversed()) await close();
}

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "seats-"));
  opened.push(() => rmSync(folder, { recursive: true }));
  return folder;
}

export function newPath(): string {
  return join(newFolder(), "seats.db");
}

/** The file that a process leaves which is killed while it holds seat A1, or while it tells of it. */
export async function leftBy(kind: Kind, holdMs: number, after: "held" | "telling"): Promise<string> {
  const folder = newFolder();
  await killDesk(folder, holdMs, [kind], after);
  return join(folder, `${kind}.db`);
}
