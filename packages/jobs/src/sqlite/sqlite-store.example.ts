// An order and the job that confirms it come into being together, or neither does.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { SqliteStore } from "@sluice/jobs/sqlite";

const folder = mkdtempSync(join(tmpdir(), "shop-"));
const path = join(folder, "shop.db"); // one file for the shop's tables and its jobs
const store = await SqliteStore.open({ path });
const db = new DatabaseSync(path);
db.exec("CREATE TABLE orders (item TEXT NOT NULL)");

function order(item: string, isInStock: boolean): void {
  db.exec("BEGIN IMMEDIATE");
  try {
    db.prepare("INSERT INTO orders VALUES (?)").run(item);
    store.addWithin(db, [{ queue: "mail", payload: { confirm: item } }]);
    if (isInStock) db.exec("COMMIT");
  } finally {
    if (db.isTransaction) db.exec("ROLLBACK"); // also when the job can't be added
  }
}

order("lamp", true);
order("sofa", false);
console.log(db.prepare("SELECT count(*) AS orders FROM orders").get()?.["orders"], "order");

const jobs = await store.claim({ queue: "mail", max: 10, leaseMs: 30_000, worker: "example" });
for (const { id, token, payload } of jobs) {
  console.log("mail:", JSON.stringify(payload));
  await store.settle([{ id, token, kind: "complete" }]);
}

db.close();
await store.close();
rmSync(folder, { recursive: true });

// Prints:
// 1 order
// mail: {"confirm":"lamp"}
