/** Adds jobs through a handle of the caller's own, so that they are there if and only if its transaction commits. */
import { statSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import type { Added } from "../job.ts";
import type { PreparedJob } from "../validate.ts";
import { prepareAdd } from "./operations/add.ts";

type Add = (jobs: readonly PreparedJob[], now: number) => Added[];

/** All or none, also when the caller then commits in spite of the error. */
export function addWithin(transaction: unknown, path: string, jobs: readonly PreparedJob[], now: number): Added[] {
  if (!(transaction instanceof DatabaseSync))
    throw new TypeError(`transaction must be a DatabaseSync, got ${typeof transaction}`);
  if (!transaction.isOpen || !transaction.isTransaction)
    throw new TypeError("transaction must be a DatabaseSync inside BEGIN and COMMIT, got one outside");
  const known = adders.get(transaction);
  const add = known?.path === path ? known.add : prepare(transaction, path);
  transaction.exec("SAVEPOINT sluice_add");
  try {
    const added = add(jobs, now);
    transaction.exec("RELEASE sluice_add");
    return added;
  } catch (error) {
    if (transaction.isTransaction) transaction.exec("ROLLBACK TO sluice_add; RELEASE sluice_add");
    throw error;
  }
}

/** For the store of that path; a handle is seldom used with another, and then it is refused. */
const adders = new WeakMap<DatabaseSync, { readonly path: string; readonly add: Add }>();

function prepare(db: DatabaseSync, path: string): Add {
  const location = db.location();
  if (location === null || !isSameFile(location, path))
    throw new TypeError(`transaction must be on ${path}, the store's file, got ${location ?? "one in memory"}`);
  const add = prepareAdd(db, () => {});
  adders.set(db, { path, add });
  return add;
}

function isSameFile(a: string, b: string): boolean {
  const [one, other] = [a, b].map((path) => statSync(path, { throwIfNoEntry: false }));
  return one !== undefined && one.dev === other?.dev && one.ino === other.ino;
}
