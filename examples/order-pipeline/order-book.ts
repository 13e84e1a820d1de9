/**
 * Orders, stock, and what was refused, in one SQLite file with the jobs: an order moves and its next job comes into being
 * in one transaction, or neither does. Each move is made once, however often its job runs.
 */
import { DatabaseSync } from "node:sqlite";
import { Jobs } from "@sluice/jobs";
import type { SqliteStore } from "@sluice/jobs/sqlite";
import { InvalidOrderError, type Order, type OrderState } from "./order.ts";

export type Queues = Readonly<Record<Step, { readonly order: string }>>;
export type Step = "charge" | "allocate" | "refund" | "notify";

const SCHEMA = `
  CREATE TABLE IF NOT EXISTS orders (
    id TEXT PRIMARY KEY, sku TEXT NOT NULL, quantity INTEGER NOT NULL, cents INTEGER NOT NULL, state TEXT NOT NULL
  ) STRICT;
  CREATE TABLE IF NOT EXISTS stock (sku TEXT PRIMARY KEY, count INTEGER NOT NULL CHECK (count >= 0)) STRICT;
  CREATE TABLE IF NOT EXISTS refused (item TEXT NOT NULL, reason TEXT NOT NULL) STRICT;
`;

/** Of a step: more than usual, since what is given up has cost somebody money already, or may have. */
const MAX_ATTEMPTS = 10;

type Row = Order & { readonly state: OrderState };

export class OrderBook {
  // I1  an order that is neither at an end nor notified has a job, alive or dead
  // I2  nothing is awaited between BEGIN and COMMIT, so that nobody else uses the handle meanwhile
  readonly #db: DatabaseSync;
  readonly #jobs: Jobs<Queues>;

  constructor(path: string, store: SqliteStore) {
    this.#db = new DatabaseSync(path, { timeout: 5_000 });
    this.#db.exec(SCHEMA);
    this.#jobs = new Jobs(store);
  }

  close(): void {
    this.#db.close();
  }

  /** False if it had been accepted before. */
  accept(order: Order): boolean {
    return this.#transact(() => {
      const { id, sku, quantity, cents } = order;
      const { changes } = this.#db
        .prepare("INSERT INTO orders VALUES (?, ?, ?, ?, 'accepted') ON CONFLICT DO NOTHING")
        .run(id, sku, quantity, cents);
      if (changes === 1) this.#add("charge", id);
      else this.#checkSame(order);
      return changes === 1;
    });
  }

  refuse(item: unknown, reason: string): void {
    this.#db.prepare("INSERT INTO refused VALUES (?, ?)").run(JSON.stringify(item) ?? String(item), reason);
  }

  restock(sku: string, count: number): void {
    const sql = "INSERT INTO stock VALUES (?, ?) ON CONFLICT DO UPDATE SET count = count + excluded.count";
    this.#db.prepare(sql).run(sku, count);
  }

  /** Nothing if it isn't in the state `from`: then it has been moved by an attempt before. */
  move(id: string, from: OrderState, to: OrderState, next: Step): void {
    this.#transact(() => this.#move(id, from, to, next));
  }

  /** Takes the goods of a charged order, or has it refunded. */
  allocate(id: string): void {
    this.#transact(() => {
      const { sku, quantity, state } = this.get(id);
      if (state !== "charged") return;
      const sql = "UPDATE stock SET count = count - ?1 WHERE sku = ?2 AND count >= ?1";
      const isTaken = this.#db.prepare(sql).run(quantity, sku).changes === 1;
      if (isTaken) this.#move(id, "charged", "allocated", "notify");
      else this.#move(id, "charged", "unallocated", "refund");
    });
  }

  get(id: string): Row {
    const row = this.#db.prepare("SELECT * FROM orders WHERE id = ?").get(id);
    if (row === undefined) throw new Error(`there is no order ${id}`);
    return row as unknown as Row;
  }

  /** How many are in each state. */
  states(): Partial<Record<OrderState, number>> {
    const rows = this.#db.prepare("SELECT state, count(*) AS count FROM orders GROUP BY state ORDER BY state").all();
    return Object.fromEntries(rows.map(({ state, count }) => [state, count]));
  }

  refused(): { readonly item: string; readonly reason: string }[] {
    const rows = this.#db.prepare("SELECT item, reason FROM refused ORDER BY rowid").all();
    return rows.map(({ item, reason }) => ({ item: String(item), reason: String(reason) }));
  }

  stock(sku: string): number {
    return Number(this.#db.prepare("SELECT count FROM stock WHERE sku = ?").get(sku)?.["count"] ?? 0);
  }

  #checkSame(order: Order): void {
    const known = this.get(order.id);
    const isSame = known.sku === order.sku && known.quantity === order.quantity && known.cents === order.cents;
    if (!isSame) throw new InvalidOrderError("its id is taken by another order");
  }

  #move(id: string, from: OrderState, to: OrderState, next: Step): void {
    const { changes } = this.#db.prepare("UPDATE orders SET state = ? WHERE id = ? AND state = ?").run(to, id, from);
    if (changes === 1) this.#add(next, id);
  }

  #add(step: Step, id: string): void {
    this.#jobs.addWithin(this.#db, step, { order: id }, { maxAttempts: MAX_ATTEMPTS });
  }

  /** A job that can't be added takes its order back with it. */
  #transact<T>(work: () => T): T {
    this.#db.exec("BEGIN IMMEDIATE");
    try {
      const value = work();
      this.#db.exec("COMMIT");
      return value;
    } finally {
      if (this.#db.isTransaction) this.#db.exec("ROLLBACK");
    }
  }
}
