/**
 * The seats of a hall and who holds them, in an SQLite file. Each hold has a number, and each extension of it a new one,
 * so that whoever comes to end a hold can tell whether it is still the one that was meant.
 */
import { DatabaseSync, type StatementSync } from "node:sqlite";

/** Named by a seat and a number; a later hold of the seat, or an extension of this one, has a greater number. */
export interface Hold {
  readonly seat: string;
  readonly number: number;
  /** In whole milliseconds since the Unix epoch. */
  readonly untilAt: number;
}

export type SeatState = "free" | "held" | "sold";

const SCHEMA = `
  CREATE TABLE IF NOT EXISTS seats (
    seat TEXT PRIMARY KEY,
    state TEXT NOT NULL DEFAULT 'free' CHECK (state IN ('free', 'held', 'sold')),
    holder TEXT,
    number INTEGER NOT NULL DEFAULT 0,
    until_at INTEGER
  ) STRICT;
  CREATE INDEX IF NOT EXISTS seats_held ON seats (until_at) WHERE state = 'held'`;

/** Longer than any write of another thread or process takes. */
const BUSY_MS = 5_000;

export class Seats {
  readonly db: DatabaseSync;
  readonly #add: StatementSync;
  readonly #state: StatementSync;
  readonly #take: StatementSync;
  readonly #extend: StatementSync;
  readonly #sell: StatementSync;
  readonly #free: StatementSync;
  readonly #freed: StatementSync;
  readonly #freeOver: StatementSync;

  constructor(path: string) {
    const db = (this.db = new DatabaseSync(path, { timeout: BUSY_MS }));
    db.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL");
    db.exec(SCHEMA);
    this.#add = db.prepare("INSERT OR IGNORE INTO seats (seat) VALUES (?)");
    this.#state = db.prepare("SELECT state FROM seats WHERE seat = ?");
    this.#take = db.prepare(
      "UPDATE seats SET state = 'held', holder = ?, until_at = ?, number = number + 1 WHERE seat = ? AND state = 'free' RETURNING number",
    );
    this.#extend = db.prepare(
      "UPDATE seats SET until_at = ?, number = number + 1 WHERE seat = ? AND state = 'held' AND holder = ? RETURNING number",
    );
    this.#sell = db.prepare("UPDATE seats SET state = 'sold' WHERE seat = ? AND state = 'held' AND holder = ?");
    this.#free = db.prepare("UPDATE seats SET state = 'free' WHERE seat = ? AND number = ? AND state = 'held'");
    this.#freed = db.prepare("SELECT 1 FROM seats WHERE seat = ? AND number = ? AND state = 'free'");
    this.#freeOver = db.prepare(
      "UPDATE seats SET state = 'free' WHERE state = 'held' AND until_at <= ? RETURNING seat, number, until_at AS untilAt",
    );
  }

  add(seats: readonly string[]): void {
    this.within(() => seats.forEach((seat) => void this.#add.run(seat)));
  }

  stateOf(seat: string): SeatState | undefined {
    return this.#state.get(seat)?.["state"] as SeatState | undefined;
  }

  /** Undefined if the seat isn't free. */
  take(seat: string, holder: string, untilAt: number): Hold | undefined {
    const row = this.#take.get(holder, untilAt, seat);
    return row && { seat, number: row["number"] as number, untilAt };
  }

  /** Undefined if `holder` doesn't hold it any more. */
  extend(seat: string, holder: string, untilAt: number): Hold | undefined {
    const row = this.#extend.get(untilAt, seat, holder);
    return row && { seat, number: row["number"] as number, untilAt };
  }

  sell(seat: string, holder: string): boolean {
    return this.#sell.run(seat, holder).changes === 1;
  }

  /** Ends a hold. True if the seat is free because of that, also when asked again; false if it was extended or bought. */
  free({ seat, number }: Pick<Hold, "seat" | "number">): boolean {
    return this.#free.run(seat, number).changes === 1 || this.#freed.get(seat, number) !== undefined;
  }

  /** Ends all holds that are over by `now`. */
  freeOver(now: number): Hold[] {
    return this.#freeOver.all(now) as unknown as Hold[];
  }

  /** What `fn` does is done as a whole, or not at all if it throws. */
  within<T>(fn: () => T): T {
    this.db.exec("BEGIN IMMEDIATE");
    try {
      const result = fn();
      this.db.exec("COMMIT");
      return result;
    } finally {
      if (this.db.isTransaction) this.db.exec("ROLLBACK");
    }
  }

  close(): void {
    if (this.db.isOpen) this.db.close();
  }
}
