/** The folder that holds everything a dispatcher must not lose. */
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { Reader } from "../storage/reader.ts";
import { CommandError, systemReason } from "./failure.ts";

/** Makes the folder if it isn't there, and hides it from git. */
export function makeDataFolder(folder: string): string {
  try {
    // Where the parent is there, no `recursive`: in a folder like /proc it would try for ever.
    mkdirSync(folder, { recursive: existsSync(folder) || !existsSync(dirname(resolve(folder))) });
    const ignore = join(folder, ".gitignore");
    if (!existsSync(ignore)) writeFileSync(ignore, "*\n");
  } catch (error) {
    throw new CommandError(`can't write to the data folder ${folder}: ${systemReason(error)}`, 1, { cause: error });
  }
  return databaseFile(folder);
}

export function databaseFile(folder: string): string {
  return join(folder, "dispatcher.sqlite");
}

/** Reads what a dispatcher has left in the folder, or is just writing. */
export function openReader(folder: string): Reader {
  const file = databaseFile(folder);
  if (!existsSync(file)) throw new CommandError(`there is no dispatcher's data in ${folder}: ${file} is missing`);
  try {
    return new Reader(file);
  } catch (error) {
    throw new CommandError(`can't read ${file}: ${systemReason(error)}`, 1, { cause: error });
  }
}
