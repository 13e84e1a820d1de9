/** Prepared statements as typed functions. Each sets how it reads, since a handle may be its user's own. */
import type { DatabaseSync, SQLInputValue, StatementSync } from "node:sqlite";

export function rows<T>(db: DatabaseSync, sql: string): (...params: SQLInputValue[]) => T[] {
  const statement = prepare(db, sql);
  return (...params) => statement.all(...params) as T[];
}

/** Each row as an array of its columns, which is cheaper to make than an object. */
export function tuples<T extends readonly unknown[]>(
  db: DatabaseSync,
  sql: string,
): (...params: SQLInputValue[]) => T[] {
  const statement = prepare(db, sql);
  statement.setReturnArrays(true);
  return (...params) => statement.all(...params) as unknown[] as T[];
}

// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- the caller knows what its statement reads
export function row<T>(db: DatabaseSync, sql: string): (...params: SQLInputValue[]) => T | undefined {
  const statement = prepare(db, sql);
  return (...params) => statement.get(...params) as T | undefined;
}

/** The number of rows that it changed. */
export function change(db: DatabaseSync, sql: string): (...params: SQLInputValue[]) => number {
  const statement = prepare(db, sql);
  return (...params) => Number(statement.run(...params).changes);
}

/** The id of the row that it made. */
export function insert(db: DatabaseSync, sql: string): (...params: SQLInputValue[]) => number {
  const statement = prepare(db, sql);
  return (...params) => Number(statement.run(...params).lastInsertRowid);
}

function prepare(db: DatabaseSync, sql: string): StatementSync {
  const statement = db.prepare(sql);
  statement.setReadBigInts(false);
  statement.setReturnArrays(false);
  return statement;
}
