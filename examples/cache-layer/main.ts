// A page that three hundred ask for at once, a list, a change, another shop's product of the same name, and an outage.
import { mkdtempSync, rmSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sleep } from "sluice";
import { ProductPages } from "./cache-layer.ts";
import { Catalogue, type PageKey } from "./catalogue.ts";
import { Database } from "./database.ts";

const folder = mkdtempSync(join(tmpdir(), "cache-layer-"));
const file = join(folder, "shop.db");
const reader = new Database(file, { busyMs: 100 });
const writer = new Database(file, { busyMs: 5_000 });

try {
  const catalogue = new Catalogue(reader, writer);
  await catalogue.create();
  const titles = { de: "Stuhl", en: "Chair", fr: "Chaise" };
  const chairs = Array.from({ length: 50 }, (_, index) => {
    return { tenant: "north", product: `chair-${index + 1}`, cents: 4_901 + index, titles };
  });
  await catalogue.add(chairs);
  await catalogue.add([{ tenant: "south", product: "chair-1", cents: 9_900, titles }]);
  await account(catalogue);
} finally {
  await Promise.all([reader.close(), writer.close()]);
  rmSync(folder, { recursive: true });
}

async function account(catalogue: Catalogue): Promise<void> {
  const pages = new ProductPages(catalogue);
  const chair: PageKey = { tenant: "north", locale: "en", product: "chair-1" };

  const before = reader.queries;
  await Promise.all(Array.from({ length: 300 }, () => catalogue.pages("north", "en", ["chair-1"])));
  console.log(`300 requests without the cache: ${reader.queries - before} queries`);
  await counted("300 requests with it", () =>
    Promise.all(Array.from({ length: 300 }, async () => (await pages.page(chair))?.cents)),
  );
  const chairs = Array.from({ length: 50 }, (_, index): PageKey => {
    return { tenant: "north", locale: "en", product: `chair-${index + 1}` };
  });
  await counted("a list of 50", () => pages.list(chairs));
  await counted("another language", async () => (await pages.page({ ...chair, locale: "fr" }))?.title);
  await counted("another shop", async () => (await pages.page({ ...chair, tenant: "south" }))?.cents);
  await counted("no such product, 100 times", () =>
    Promise.all(Array.from({ length: 100 }, () => pages.page({ ...chair, product: "table" }))),
  );
  await pages.setPrice("north", "chair-1", 3_900);
  await counted("after a change of its price", async () => (await pages.page(chair))?.cents);

  const quick = new ProductPages(catalogue, { ttlMs: 20 });
  await quick.page(chair);
  await catalogue.setPrice("north", "chair-1", 2_900); // by somebody who doesn't tell the cache
  await sleep(30);
  await counted("too old, but shown", async () => (await quick.page(chair))?.cents);
  while (quick.stats().loading > 0) await sleep(1);
  console.log(`and the next has ${(await quick.page(chair))?.cents}`);

  const strict = new ProductPages(catalogue, { ttlMs: 20, staleMs: 0, onError: (error) => console.log(String(error)) });
  await strict.page(chair);
  const lock = new DatabaseSync(file);
  lock.exec("BEGIN EXCLUSIVE");
  await sleep(30);
  await counted("the database is locked", async () => (await strict.page(chair))?.cents);
  lock.close();
}

async function counted(
  what: string,
  read: () => Promise<readonly unknown[] | string | number | undefined>,
): Promise<void> {
  const before = reader.queries;
  const found = await read();
  const queries = reader.queries - before;
  const shown = Array.isArray(found) ? `${found.length} answers` : String(found);
  console.log(`${what}: ${shown}, ${queries} ${queries === 1 ? "query" : "queries"}`);
}

// Prints:
// 300 requests without the cache: 300 queries
// 300 requests with it: 300 answers, 1 query
// a list of 50: 50 answers, 1 query
// another language: Chaise, 1 query
// another shop: 9900, 1 query
// no such product, 100 times: 100 answers, 1 query
// after a change of its price: 3900, 1 query
// too old, but shown: 3900, 0 queries
// and the next has 2900
// DatabaseError: database is locked
// the database is locked: 2900, 1 query
