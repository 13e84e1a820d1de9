import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { faults } from "./sizes.ts";

const LONG = "packages/sluice/src/sync/long.ts";
let root = "";

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "sizes-"));
  write(LONG, 400);
  write("apps/dispatcher/src/short.ts", 399);
  write("packages/sluice/dist/long.js", 1_000);
  write("packages/sluice/src/sync/x.test.ts", 599);
});

afterEach(() => {
  rmSync(root, { recursive: true });
});

function write(file: string, lines: number): void {
  mkdirSync(dirname(join(root, file)), { recursive: true });
  writeFileSync(join(root, file), "//\n".repeat(lines));
}

it("names a file of 400 lines, and none below", () => {
  expect(faults(root, {})).toEqual([`${LONG} has 400 lines`]);
});

it("names a list of tests of 600 lines", () => {
  write("packages/sluice/src/sync/x.test.ts", 600);
  expect(faults(root, { [LONG]: "generated" })).toEqual(["packages/sluice/src/sync/x.test.ts has 600 lines"]);
});

it("lets a file be long that is listed", () => {
  expect(faults(root, { [LONG]: "generated" })).toEqual([]);
});

it("names what is listed and isn't long", () => {
  const found = faults(root, {
    [LONG]: "generated",
    "apps/dispatcher/src/short.ts": "was long",
    "gone.ts": "was long",
  });
  expect(found).toHaveLength(2);
  expect(found.join()).toMatch(/short\.ts is on the list.*gone\.ts is on the list/);
});
