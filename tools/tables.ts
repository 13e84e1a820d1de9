// The tables that say what a test shows: docs/peers.md, docs/semantics/*.md and docs/failure-modes.md. Each row ends with
// the title of a test that passed in the last run of the unit tests, or says in so many words why there is none.
import { existsSync, globSync, readFileSync } from "node:fs";
import { basename } from "node:path";
import { type Titles, TITLES_FILE } from "./titles.ts";

/** A kind of table, which may be spread over several files. */
export interface Kind {
  readonly columns: readonly string[];
  /** So many of the first columns tell rows apart, in all files of the kind. */
  readonly key: number;
  /** What may stand in place of a title, before a colon and the reason. */
  readonly excuses: readonly string[];
  readonly minRows: number;
  /** The first column is a number that the title begins with. */
  readonly numbered?: boolean;
}

export const PEERS: Kind = {
  columns: ["Peer", "What it offers", "Where", "Here"],
  key: 2,
  excuses: ["not offered"],
  minRows: 1,
};
export const SEMANTICS: Kind = {
  columns: ["Source", "What it says", "Here"],
  key: 2,
  excuses: ["differs", "not offered"],
  minRows: 250,
};
export const FAILURE_MODES: Kind = {
  columns: ["Id", "Fault", "Answer", "Here"],
  key: 3,
  excuses: [],
  minRows: 1,
  numbered: true,
};

const INDEX = "docs/semantics/README.md";

/** What is wrong with the tables of one kind, given by file. */
export function faults(kind: Kind, texts: ReadonlyMap<string, string>, titles: ReadonlySet<string>): string[] {
  const seen = new Set<string>();
  const found: string[] = [];
  for (const [file, text] of texts) {
    for (const [index, line] of text.split("\n").entries()) {
      if (!line.startsWith("|")) continue;
      const cells = cellsOf(line);
      if (isHead(kind, cells)) continue;
      const key = cells.slice(0, kind.key).join(": ");
      const why = seen.has(key) ? `repeats ${key}` : rowFault(kind, cells, titles);
      if (why !== undefined) found.push(`${file}:${index + 1} ${why}`);
      seen.add(key);
    }
  }
  if (seen.size < kind.minRows) found.push(`${[...texts.keys()].join(", ")}: ${seen.size} of ${kind.minRows} rows`);
  return found;
}

function cellsOf(line: string): string[] {
  const cells = line.slice(1, line.lastIndexOf("|")).split(/(?<!\\)\|/);
  return cells.map((cell) => cell.trim().replaceAll("\\|", "|"));
}

function isHead({ columns }: Kind, cells: readonly string[]): boolean {
  return cells.every((cell) => /^:?-+:?$/.test(cell)) || cells.join("|") === columns.join("|");
}

function rowFault(kind: Kind, cells: readonly string[], titles: ReadonlySet<string>): string | undefined {
  const { columns, excuses, numbered } = kind;
  if (cells.length !== columns.length || cells.includes("")) return `needs ${columns.length} filled columns`;
  const [id = "", here = ""] = [cells[0], cells.at(-1)];
  const title = /^(`+)(.*)\1$/.exec(here)?.[2]?.trim(); // a title with a backtick in it stands between two of them
  if (title !== undefined) {
    if (!titles.has(title)) return `says "${title}", but no test of that title passed`;
    return numbered === true && !title.split(": ")[0]?.split(", ").includes(id)
      ? `needs a test whose title begins with "${id}: "`
      : undefined;
  }
  const isExcused = excuses.some((excuse) => here.startsWith(`${excuse}: `) && here.length > excuse.length + 2);
  const choices = ["`a test's title`", ...excuses.map((excuse) => `"${excuse}: why"`)];
  return isExcused ? undefined : `must end with ${choices.join(" or ")}, got ${here}`;
}

/** Files of `files` that the index doesn't link to. */
export function unlisted(index: string, files: readonly string[]): string[] {
  return files.filter((file) => !index.includes(`](${basename(file)})`));
}

if (import.meta.main) {
  if (!existsSync(TITLES_FILE)) throw new Error(`${TITLES_FILE} is missing: run the unit tests first`);
  const titles = new Set(Object.values(JSON.parse(readFileSync(TITLES_FILE, "utf8")) as Titles).flat());
  const semantics = globSync("docs/semantics/*.md").filter((file) => file !== INDEX);
  const tables: readonly (readonly [Kind, readonly string[]])[] = [
    [PEERS, ["docs/peers.md"]],
    [SEMANTICS, semantics.toSorted()],
    [FAILURE_MODES, ["docs/failure-modes.md"]],
  ];
  const found = tables.flatMap(([kind, files]) =>
    faults(kind, new Map(files.map((file) => [file, readFileSync(file, "utf8")])), titles),
  );
  for (const file of unlisted(readFileSync(INDEX, "utf8"), semantics)) found.push(`${INDEX} doesn't list ${file}`);
  for (const line of found) console.error(line);
  process.exitCode = found.length === 0 ? 0 : 1;
}
