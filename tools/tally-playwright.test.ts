import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { expect, it } from "vitest";

/** Playwright takes seconds to start, and more where others work. */
const LIMIT_MS = 120_000;
const BEGIN = 'import { expect, test } from "@playwright/test";\n';

/** What is counted of these files, by their names; no browser is needed where no test asks for a page. */
async function tally(files: Readonly<Record<string, string>>): Promise<Readonly<Record<string, number>>> {
  const folder = mkdtempSync(join(tmpdir(), "playwright-"));
  symlinkSync(resolve("node_modules"), join(folder, "node_modules"));
  const config = { reporter: resolve("tools/tally-playwright.ts"), outputDir: join(folder, "out") };
  writeFileSync(join(folder, "playwright.config.mjs"), `export default ${JSON.stringify(config)};\n`);
  for (const [name, code] of Object.entries(files)) writeFileSync(join(folder, name), BEGIN + code);
  const TALLY = join(folder, "tally");
  const command = [resolve("node_modules/@playwright/test/cli.js"), "test"];
  const run = promisify(execFile)(process.execPath, command, { cwd: folder, env: { ...process.env, TALLY } });
  await run.catch(() => undefined); // as some tests fail
  const count = JSON.parse(readFileSync(TALLY, "utf8")) as Record<string, number>;
  rmSync(folder, { recursive: true });
  return count;
}

it(
  "counts what passes, what fails and what is skipped",
  async () => {
    const code = `
    test("passes", () => expect(1).toBe(1));
    test.skip("is skipped", () => {});
    test("fails", () => expect(1).toBe(2));`;
    expect(await tally({ "some.spec.mjs": code })).toEqual({ passed: 1, failed: 1, skipped: 1 });
  },
  LIMIT_MS,
);

it(
  "counts a file that can't be loaded as a failure",
  async () => {
    const { passed, failed } = await tally({ "broken.spec.mjs": "throw new Error('broken');" });
    expect(passed).toBe(0);
    expect(failed).toBeGreaterThan(0);
  },
  LIMIT_MS,
);
