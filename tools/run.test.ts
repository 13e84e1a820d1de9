import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";

const script = resolve("tools/run.ts");
let root = "";

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "run-"));
  mkdirSync(join(root, "node_modules/.bin"), { recursive: true });
});

afterEach(() => {
  rmSync(root, { recursive: true });
});

/** Puts a program of that name where the steps look first. */
function program(name: string, code: string): void {
  const file = join(root, "node_modules/.bin", name);
  writeFileSync(file, `#!/bin/sh\n${code}\n`);
  chmodSync(file, 0o755);
}

/** What it printed, line by line, and how it ended; gets SIGTERM once it has printed `end`. */
async function run(plan: string, end?: string): Promise<{ readonly lines: string[]; readonly code: number | null }> {
  const env = { ...process.env, PATH: "/usr/bin:/bin" };
  const child = spawn(process.execPath, [script, plan], { cwd: root, env, stdio: ["ignore", "pipe", "ignore"] });
  let text = "";
  child.stdout.on("data", (chunk: Buffer) => {
    text += chunk.toString();
    if (end !== undefined && text.includes(end) && !child.killed) child.kill("SIGTERM");
  });
  const [code] = (await once(child, "close")) as [number | null];
  return { lines: text.trimEnd().split("\n"), code };
}

it("counts a step that fails, is killed or isn't there as one failure, and goes on to the total", async () => {
  program("tsc", "exit 0");
  program("oxlint", "kill -9 $$");
  program("node", "exit 3");
  const { lines, code } = await run("check");
  expect(lines.at(-1)).toBe("1 passed, 4 failed");
  expect(code).toBe(1);
  expect(lines.join("\n")).toMatch(/lint: ended with SIGKILL\nformat: .*ENOENT\nrules: ended with exit code 3/);
});

it("tells at the end which tests failed", async () => {
  const counted = { passed: 1, failed: 1, skipped: 0, failures: ["some.test.ts: fails at times\nexpected 1, was 2"] };
  for (const name of ["tsc", "oxlint", "oxfmt", "node"]) program(name, "exit 0");
  program("tsc", `echo '${JSON.stringify(counted).replace("\\", "\\\\")}' > "$TALLY"; exit 1`);
  const { lines } = await run("check");
  expect(lines.slice(-6)).toEqual([
    "some.test.ts: fails at times",
    "expected 1, was 2",
    "",
    "types: ended with exit code 1",
    "",
    "5 passed, 1 failed",
  ]);
});

it("passes when all steps do", async () => {
  for (const name of ["tsc", "oxlint", "oxfmt", "node"]) program(name, "exit 0");
  const { lines, code } = await run("check");
  expect([lines.at(-1), code]).toEqual(["5 passed, 0 failed", 0]);
});

it("ends with the total when it is told to stop, and takes the step with it", async () => {
  program("tsc", "echo under way; exec sleep 600");
  const { lines, code } = await run("check", "under way");
  expect([lines.at(-1), code]).toEqual(["0 passed, 1 failed", 1]);
});

it("ends with the total when there is no such plan", async () => {
  const { lines, code } = await run("everything");
  expect([lines.at(-1), code]).toEqual(["0 passed, 1 failed", 1]);
});
