import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, it } from "vitest";

interface Answer {
  readonly code?: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a command that needs a program which is not there and, without a PATH, can't be installed. */
function withMissing(env: NodeJS.ProcessEnv): Promise<Answer> {
  const command = ["tools/debian.ts", "no-such-program", "--", process.execPath, "-p", "'it ran'"];
  const answer = promisify(execFile)(process.execPath, command, { env: { PATH: "", ...env } });
  return answer.catch((error: Answer) => error);
}

it("names what is missing and goes on without it", async () => {
  const { code, stdout, stderr } = await withMissing({});
  expect([code, stdout]).toEqual([undefined, ""]);
  expect(stderr).toContain("Debian's no-such-program is missing: left out are the tests that need it");
});

it("fails for what is missing where CI is set", async () => {
  const { code, stdout, stderr } = await withMissing({ CI: "true" });
  expect([code, stdout]).toEqual([1, ""]);
  expect(stderr).toContain("Debian's no-such-program is missing");
});

it("counts as skipped what it leaves out, so that nobody takes it for no test at all", async () => {
  const folder = mkdtempSync(join(tmpdir(), "debian-"));
  const TALLY = join(folder, "tally");
  await withMissing({ TALLY });
  const { passed, failed, skipped } = JSON.parse(readFileSync(TALLY, "utf8")) as Record<string, number>;
  expect([passed, failed]).toEqual([0, 0]);
  expect(skipped).toBeGreaterThan(0);
  rmSync(folder, { recursive: true });
});
