/** `dead list` and `dead redrive`: notifications that were given up. */
import { count } from "../report/numbers.ts";
import type { DeadFilter } from "../storage/calls.ts";
import type { DeadLetter } from "../storage/reader.ts";
import { call, openStore } from "../storage/store.ts";
import { databaseFile, openReader } from "./data.ts";
import { CommandError } from "./failure.ts";
import type { Terminal } from "./terminal.ts";

export interface DeadOptions extends DeadFilter {
  readonly data: string;
  readonly json?: boolean | undefined;
  readonly limit: number;
}

export interface RedriveOptions extends DeadOptions {
  /** Without it, only what would be done is shown. */
  readonly yes?: boolean | undefined;
  readonly all?: boolean | undefined;
}

/** That of no dispatcher. */
const NO_RUN = 0;

export function listDead(options: DeadOptions, terminal: Terminal): void {
  const reader = openReader(options.data);
  try {
    const letters = reader.dead(options, options.limit);
    if (options.json === true) return letters.forEach((letter) => terminal.print(JSON.stringify(letter)));
    const total = reader.countDead(options);
    if (total > 0) terminal.print(letters.map(lineOf).join("\n"));
    terminal.note(
      total > letters.length ? `the first ${count(letters.length)} of ${count(total)}` : `${count(total)} dead`,
    );
  } finally {
    reader.close();
  }
}

/** Puts them back in their queues, with attempts and deadline anew; a dispatcher that runs takes them at once. */
export async function redriveDead(options: RedriveOptions, terminal: Terminal): Promise<void> {
  const { ids, user, channel, rule, all, yes, json, limit } = options;
  if (all !== true && ids === undefined && user === undefined && channel === undefined && rule === undefined) {
    throw new CommandError("dead redrive needs ids, --user, --channel or --rule to choose by, or --all", 2);
  }
  if (yes !== true) {
    listDead(options, terminal);
    return terminal.note("nothing was changed: add --yes to redrive them");
  }
  openReader(options.data).close(); // says so when there is nothing there, where the store would make a file
  const store = await openStore(databaseFile(options.data));
  try {
    const redriven = await call(store, "redrive", { run: NO_RUN, filter: { ids, user, channel, rule }, max: limit });
    terminal.print(json === true ? JSON.stringify({ redriven }) : `${count(redriven)} redriven`);
    if (ids !== undefined && redriven < new Set(ids).size) terminal.note("of the ids given, the others are not dead");
  } finally {
    await store.close();
  }
}

function lineOf({ id, diedAt, user, channel, rule, reason }: DeadLetter): string {
  return `${id}  ${new Date(diedAt).toISOString()}  ${user} over ${channel} by ${rule}: ${reason}`;
}
