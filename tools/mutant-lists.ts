// What `*.mutants.json` beside a source file lists: the ways to break it that a test must notice.
import { globSync, readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";

export interface Mutant {
  readonly title: string;
  readonly list: string;
  /** The file that is broken. */
  readonly path: string;
  readonly broken: string;
}

interface Entry {
  readonly title: string;
  /** Relative to the list; the source file beside it if left out. */
  readonly file?: string;
  /** Occurs exactly once; lines. */
  readonly find: string | readonly string[];
  readonly replace: string | readonly string[];
}

export function mutantLists(): string[] {
  return globSync(["{packages,apps}/*/src/**/*.mutants.json", "examples/*/*.mutants.json"]).toSorted();
}

/** Throws if what a mutant changes isn't there, or is there twice: the code has moved on. */
export function readMutants(list: string): Mutant[] {
  const entries = JSON.parse(readFileSync(list, "utf8")) as readonly Entry[];
  return entries.map(({ title, file, find, replace }) => {
    const path = join(dirname(list), file ?? basename(list).replace(".mutants.json", ".ts"));
    const parts = readFileSync(path, "utf8").split(lines(find));
    if (parts.length === 2) return { title, list, path, broken: parts.join(lines(replace)) };
    throw new Error(`${list}: what "${title}" changes occurs ${parts.length - 1} times in ${path}`);
  });
}

function lines(text: string | readonly string[]): string {
  return typeof text === "string" ? text : text.join("\n");
}
