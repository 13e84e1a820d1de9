/**
 * Notices that a database's file or its log was removed or replaced while it is open. SQLite goes on with the file that
 * it has, so that what is written then would be acknowledged and seen by nobody.
 */
import { statSync } from "node:fs";
import type { DatabaseSync } from "node:sqlite";
import { StoreOpenError } from "./errors.ts";

/** For a database that has been written to. What it returns throws `StoreOpenError`; it takes a few microseconds. */
export function guardFile(db: DatabaseSync): () => void {
  const path = db.location();
  if (path === null) return () => {}; // in memory
  const parts = [path, `${path}-wal`].map((part) => ({ part, identity: identityOf(part) }));
  return () => {
    for (const { part, identity } of parts) {
      if (identityOf(part) !== identity)
        throw new StoreOpenError(path, `${part} was removed or replaced while it was open`);
    }
  };
}

function identityOf(path: string): string | undefined {
  const found = statSync(path, { throwIfNoEntry: false });
  return found && `${found.dev} ${found.ino}`;
}
