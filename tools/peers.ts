// Fails on a row of docs/peers.md whose test did not pass in the last run of the unit tests.
import { existsSync, readFileSync } from "node:fs";
import { type Titles, TITLES_FILE } from "./titles.ts";

const DOCUMENT = "docs/peers.md";
const COLUMNS = 4;
const NOT_OFFERED = /^not offered: \S/;

/** What is wrong with the tables of `text`: peer, what it offers, where that is said, and the test that shows it here. */
export function faults(text: string, titles: ReadonlySet<string>): string[] {
  const rows = text.split("\n").flatMap((line, index) => (line.startsWith("|") ? [{ line, number: index + 1 }] : []));
  const seen = new Set<string>();
  let count = 0;
  const found: string[] = [];
  for (const { line, number } of rows) {
    const cells = line
      .slice(1, line.lastIndexOf("|"))
      .split(/(?<!\\)\|/)
      .map((cell) => cell.trim().replaceAll("\\|", "|"));
    const [peer = "", offer = "", where = "", here = ""] = cells;
    if (/^-+$/.test(peer) || peer === "Peer") continue;
    count += 1;
    const key = `${peer}: ${offer}`;
    const title = /^`(.*)`$/.exec(here)?.[1];
    if (cells.length !== COLUMNS || [peer, offer, where, here].includes(""))
      found.push(`line ${number} needs ${COLUMNS} filled columns`);
    else if (seen.has(key)) found.push(`line ${number} repeats ${key}`);
    else if (title === undefined && !NOT_OFFERED.test(here))
      found.push(`line ${number} must end with \`a test's title\` or "not offered: why", got ${here}`);
    else if (title !== undefined && !titles.has(title))
      found.push(`line ${number}: no test that passed is called "${title}"`);
    seen.add(key);
  }
  return count === 0 ? ["there is no row"] : found;
}

if (import.meta.main) {
  if (!existsSync(TITLES_FILE)) throw new Error(`${TITLES_FILE} is missing: run the unit tests first`);
  const titles = JSON.parse(readFileSync(TITLES_FILE, "utf8")) as Titles;
  const found = faults(readFileSync(DOCUMENT, "utf8"), new Set(Object.values(titles).flat()));
  for (const line of found) console.error(`${DOCUMENT}: ${line}`);
  process.exitCode = found.length === 0 ? 0 : 1;
}
