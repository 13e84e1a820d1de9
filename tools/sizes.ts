// Fails when a source has 400 lines or more, or a list of tests 600, and isn't listed here with its reason, or is listed
// in vain. Tests may be longer since they are flat: nobody has to read all of them to follow one.
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";

const MAX_LINES = { source: 399, test: 599 };
const FILES = ["{packages,apps}/*/src/**/*.{ts,sql}", "{bench,examples,tests,tools}/**/*.ts"];
const ALLOWED: Readonly<Record<string, string>> = {};

export function faults(root = ".", allowed: Readonly<Record<string, string>> = ALLOWED): string[] {
  const files = globSync(FILES, { cwd: root, exclude: ["**/node_modules/**"] });
  const long = new Map<string, number>();
  for (const file of files) {
    const count = readFileSync(join(root, file), "utf8").split("\n").length - 1;
    if (count > MAX_LINES[file.endsWith(".test.ts") ? "test" : "source"]) long.set(file, count);
  }
  const inVain = Object.keys(allowed).filter((file) => !long.has(file));
  return [
    ...[...long].filter(([file]) => allowed[file] === undefined).map(([file, count]) => `${file} has ${count} lines`),
    ...inVain.map((file) => `${file} is on the list of long files, but is none`),
  ];
}

if (import.meta.main) {
  const found = faults();
  for (const line of found) console.error(`${line}; split it, or say in tools/sizes.ts why not`);
  process.exitCode = found.length === 0 ? 0 : 1;
}
