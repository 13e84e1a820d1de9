import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it } from "vitest";

interface Answer {
  readonly code?: number;
  readonly stdout: string;
  readonly stderr: string;
}

const script = resolve("tools/scenario.ts");
let root = "";

beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), "scenario-"));
  mkdirSync(join(root, "tests/chaos/kill"), { recursive: true });
  writeFileSync(
    join(root, "tests/chaos/kill.ts"),
    "console.log(process.argv.slice(2).join(), process.execArgv.join());",
  );
  writeFileSync(join(root, "tests/chaos/broken.ts"), "process.exit(3);");
  writeFileSync(join(root, "tests/chaos/kill.test.ts"), "");
  writeFileSync(join(root, "tests/chaos/kill/part.ts"), "");
});

afterAll(() => {
  rmSync(root, { recursive: true });
});

function run(...args: readonly string[]): Promise<Answer> {
  const answer = promisify(execFile)(process.execPath, [script, ...args], { cwd: root });
  return answer.catch((error: Answer) => error);
}

it("runs the scenario of that name on the source, with its flags", async () => {
  const { stdout } = await run("chaos", "kill", "--kills", "5", "--json");
  expect(stdout.trim()).toBe("--kills,5,--json --conditions=@sluice/source");
});

it("ends with the scenario's exit code", async () => {
  expect(await run("chaos", "broken")).toMatchObject({ code: 3 });
});

it("lists the names when there is none of that name", async () => {
  const { code, stderr } = await run("chaos", "kil");
  expect(code).toBe(2);
  expect(stderr).toContain(
    "no chaos scenario is called kil\nusage: npm run chaos -- NAME [FLAG…]\nnames: broken, kill\n",
  );
});

it.each([[], ["--help"]])("lists the names when asked %j", async (...args) => {
  const { code, stdout } = await run("chaos", ...args);
  expect(code).toBeUndefined();
  expect(stdout).toContain("names: broken, kill\n");
});
