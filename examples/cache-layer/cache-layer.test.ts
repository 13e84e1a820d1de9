import { mkdtempSync, rmSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { setImmediate as turn } from "node:timers/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { Gate } from "sluice";
import { VirtualClock } from "sluice/testing";
import { ProductPages } from "./cache-layer.ts";
import { Catalogue, type Locale, LOCALES, type PageKey, type Product } from "./catalogue.ts";
import { Database, type Row } from "./database.ts";

const chair: PageKey = { tenant: "north", locale: "en", product: "chair" };
const pageOf = (product: string): PageKey => ({ ...chair, product });
const inLocale = (locale: Locale): PageKey => ({ ...chair, locale });
const titles = { de: "Stuhl", en: "Chair", fr: "Chaise" };
const product = (name: string, cents: number, tenant = "north"): Product => ({ tenant, product: name, cents, titles });

let folder: string;
let file: string;
let reader: Database;
let writer: Database;
let catalogue: Catalogue;
let clock: VirtualClock;
let failures: string[];
/** Answers of the database come through here, as over a slow wire: while it is closed, they are on their way. */
let wire: Gate;
/** Of the queries so far. */
let signals: (AbortSignal | undefined)[];
let answers: Promise<unknown>[];
let before: number;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "cache-layer-"));
  file = join(folder, "shop.db");
  reader = new Database(file);
  writer = new Database(file, { busyMs: 10_000 });
  await writer.all("PRAGMA synchronous = OFF", []); // nothing in here has to outlive the machine
  await new Catalogue(reader, writer).create();
});

beforeEach(async () => {
  clock = new VirtualClock();
  wire = new Gate({ open: true });
  [failures, signals, answers] = [[], [], []];
  const slow: Pick<Database, "all"> = {
    all(sql, values, options) {
      const rows = overWire(reader.all(sql, values, options));
      signals.push(options?.signal);
      answers.push(rows.catch(() => undefined));
      return rows;
    },
  };
  catalogue = new Catalogue(slow, writer);
  for (const table of ["price", "title"]) await writer.all(`DELETE FROM ${table}`, []);
  await catalogue.add([product("chair", 4_900)]);
  before = reader.queries;
});

afterAll(async () => {
  await Promise.all([reader.close(), writer.close()]);
  rmSync(folder, { recursive: true });
});

async function overWire<T>(answer: Promise<T>): Promise<T> {
  await Promise.allSettled([answer]);
  await wire.wait();
  return answer;
}

const queries = (): number => reader.queries - before;

const open = (random: () => number = () => 0): ProductPages =>
  new ProductPages(catalogue, { clock, random, onError: (error) => void failures.push(`${error as Error}`) });

/** When all answers that are on their way have come, and been kept. */
async function settled(): Promise<void> {
  await turn();
  await Promise.all(answers);
  await turn();
}

/** When the database has been asked so many times. */
async function asked(times: number): Promise<void> {
  while (signals.length < times) await turn();
}

const cents = async (pages: ProductPages, key = chair): Promise<number | undefined> => (await pages.page(key))?.cents;

it("J19: 300 requests that miss one page together make one query", async () => {
  const pages = open();
  const found = await Promise.all(Array.from({ length: 300 }, () => cents(pages)));
  expect([found.length, new Set(found), queries()]).toEqual([300, new Set([4_900]), 1]);
  expect(await cents(pages)).toBe(4_900);
  expect(queries()).toBe(1);
});

it("J19: without it, as many as there are requests", async () => {
  await Promise.all(Array.from({ length: 300 }, () => catalogue.pages("north", "en", ["chair"])));
  expect(queries()).toBe(300);
});

it("J22, F12.5: the product of another shop, or in another language, is another page", async () => {
  await catalogue.add([{ ...product("chair", 9_900, "south"), titles: { ...titles, en: "Seat" } }]);
  const pages = open();
  const keys: PageKey[] = [chair, inLocale("fr"), { ...chair, tenant: "south" }];
  const found = await Promise.all(keys.map((key) => pages.page(key)));
  expect(found).toEqual([
    { ...chair, title: "Chair", cents: 4_900 },
    { ...chair, locale: "fr", title: "Chaise", cents: 4_900 },
    { ...chair, tenant: "south", title: "Seat", cents: 9_900 },
  ]);
});

it("J22: no name of a shop makes its pages those of another", async () => {
  await catalogue.add([product("chair", 1, "a en")]);
  await catalogue.add([product("en chair", 2, "a")]);
  const pages = open();
  expect(await cents(pages, { tenant: "a en", locale: "en", product: "chair" })).toBe(1);
  expect(await cents(pages, { tenant: "a", locale: "en", product: "en chair" })).toBe(2);
});

it("J25: a list takes one query for what isn't there yet, in its own order, and none the second time", async () => {
  const names = Array.from({ length: 50 }, (_, index) => `lamp-${index}`);
  await catalogue.add(names.map((name, index) => product(name, index)));
  const pages = open();
  const keys = ["chair", ...names.toReversed(), "missing"].map(pageOf);
  await pages.page(chair);
  for (let time = 1; time <= 2; time += 1) {
    const found = await pages.list(keys);
    const prices = found.map((result) => (result.status === "fulfilled" ? result.value?.cents : "failed"));
    expect(prices).toEqual([4_900, ...names.map((_, index) => index).toReversed(), undefined]);
    expect(queries()).toBe(2);
  }
});

it("asks for no more than 200 pages with one query", async () => {
  const keys = Array.from({ length: 401 }, (_, index) => pageOf(`lamp-${index}`));
  await open().list(keys);
  expect(queries()).toBe(3);
});

it("shows an old page at once, and loads it anew once for all who see it", async () => {
  const pages = open();
  await pages.page(chair);
  await catalogue.setPrice("north", "chair", 3_900); // by somebody who tells nobody
  await clock.advance(59_999);
  expect([await cents(pages), queries()]).toEqual([4_900, 1]);
  await clock.advance(1);
  wire.close();
  const shown = await Promise.all(Array.from({ length: 300 }, () => cents(pages)));
  expect(new Set(shown)).toEqual(new Set([4_900]));
  wire.open();
  await settled();
  expect([await cents(pages), queries()]).toEqual([3_900, 2]);
});

it("doesn't show a page that is older than that, but waits for a new one", async () => {
  const pages = open();
  await pages.page(chair);
  await catalogue.setPrice("north", "chair", 3_900);
  await clock.advance(120_000);
  expect(await cents(pages)).toBe(3_900);
});

it("F12.2: shows the old page while the database is locked, asks it once a second, and tells", async () => {
  const pages = open();
  await pages.page(chair);
  await clock.advance(120_000);
  const lock = new DatabaseSync(file);
  lock.exec("BEGIN EXCLUSIVE");
  const shown = await Promise.all(Array.from({ length: 300 }, () => cents(pages)));
  expect([new Set(shown), queries()]).toEqual([new Set([4_900]), 2]);
  expect(failures).toEqual(["DatabaseError: database is locked"]);
  await clock.advance(999);
  expect([await cents(pages), queries()]).toEqual([4_900, 2]);
  lock.close();
  await catalogue.setPrice("north", "chair", 3_900);
  await clock.advance(1);
  await pages.page(chair);
  await settled();
  expect([await cents(pages), queries()]).toEqual([3_900, 3]);
});

it("gives what there is of a list when the rest can't be had", async () => {
  const pages = open();
  await pages.page(chair);
  const lock = new DatabaseSync(file);
  lock.exec("BEGIN EXCLUSIVE");
  const found = await pages.list([pageOf("lamp"), chair]);
  expect(found).toMatchObject([{ status: "rejected" }, { status: "fulfilled", value: { cents: 4_900 } }]);
  lock.close();
});

it("F12.1: a failure with no old page to show is told to all, and over after a second", async () => {
  const pages = open();
  const lock = new DatabaseSync(file);
  lock.exec("BEGIN EXCLUSIVE");
  const found = await Promise.allSettled(Array.from({ length: 300 }, () => pages.page(chair)));
  expect(new Set(found.map(({ status }) => status))).toEqual(new Set(["rejected"]));
  lock.close();
  await expect(pages.page(chair)).rejects.toThrow("database is locked");
  expect(queries()).toBe(1);
  await clock.advance(1_000);
  expect([await cents(pages), queries()]).toEqual([4_900, 2]);
});

it("J24: a load has two seconds, then the old page stands in and the query is no longer wanted", async () => {
  const pages = open();
  await pages.page(chair);
  await clock.advance(120_000);
  wire.close();
  const shown = cents(pages);
  await asked(2);
  await clock.advance(2_000);
  expect(await shown).toBe(4_900);
  expect(failures).toEqual(["TimeoutError: timed out after 2000 ms"]);
  expect(signals.at(-1)?.aborted).toBe(true);
  wire.open();
});

it("J24: one who leaves takes nobody along; when all have left, the query is no longer wanted", async () => {
  const pages = open();
  wire.close();
  const [one, other] = [new AbortController(), new AbortController()];
  const waits = [one, other].map(({ signal }) => pages.page(chair, { signal }));
  await asked(1);
  one.abort(new Error("gone"));
  await expect(waits[0]).rejects.toThrow("gone");
  expect(signals.at(-1)?.aborted).toBe(false);
  other.abort(new Error("gone as well"));
  await expect(waits[1]).rejects.toThrow("gone as well");
  expect(signals.at(-1)?.aborted).toBe(true);
  wire.open();
});

it("F12.3: a change is seen by all who come after it, though an older load is under way", async () => {
  const pages = open();
  wire.close();
  const older = cents(pages);
  await asked(1);
  await reader.all("SELECT 1", []); // so the old price has been read
  await pages.setPrice("north", "chair", 3_900);
  const newer = cents(pages);
  wire.open();
  expect([await older, await newer]).toEqual([4_900, 3_900]);
  await settled();
  expect([await cents(pages), queries()]).toEqual([3_900, 3]);
});

it("forgets a page once its change is written, not before", async () => {
  const pages = open();
  const lock = new DatabaseSync(file);
  lock.exec("BEGIN IMMEDIATE"); // others may read, none may write
  const change = pages.setPrice("north", "chair", 3_900);
  expect(await cents(pages)).toBe(4_900);
  lock.close();
  await change;
  expect(await cents(pages)).toBe(3_900);
});

it("forgets a page in all its languages", async () => {
  const pages = open();
  const keys = LOCALES.map(inLocale);
  await pages.list(keys);
  await pages.setPrice("north", "chair", 3_900);
  expect(await Promise.all(keys.map((key) => cents(pages, key)))).toEqual([3_900, 3_900, 3_900]);
});

it("forgets a page though its change failed, since it may have been written all the same", async () => {
  const lossy = new Catalogue(reader, {
    async all(sql, values): Promise<readonly Row[]> {
      await writer.all(sql, values);
      throw new Error("the connection broke");
    },
  });
  const pages = new ProductPages(lossy, { clock });
  expect(await cents(pages)).toBe(4_900);
  await expect(pages.setPrice("north", "chair", 3_900)).rejects.toThrow("the connection broke");
  expect(await cents(pages)).toBe(3_900);
});

it("asks once in five seconds for what doesn't exist, and finds at once what was added", async () => {
  const pages = open();
  const table = pageOf("table");
  await Promise.all(Array.from({ length: 300 }, () => pages.page(table)));
  await clock.advance(4_999);
  expect([await pages.page(table), queries()]).toEqual([undefined, 1]);
  await pages.add(product("table", 19_900));
  expect([await cents(pages, table), queries()]).toEqual([19_900, 2]);
});

it("finds after five seconds what others have added", async () => {
  const pages = open();
  const table = pageOf("table");
  await pages.page(table);
  await catalogue.add([product("table", 19_900)]);
  await clock.advance(5_000);
  await pages.page(table);
  await settled();
  expect(await cents(pages, table)).toBe(19_900);
});

it("lets pages that were loaded together end apart", async () => {
  const draws = [0, 1];
  const pages = open(() => draws.shift() ?? 0);
  const other = inLocale("fr");
  await pages.page(chair);
  await pages.page(other);
  await clock.advance(54_000);
  await pages.page(chair);
  await settled();
  expect(queries()).toBe(2);
  await pages.page(other);
  await settled();
  expect(queries()).toBe(3);
});

it("keeps no more pages than it may", async () => {
  const pages = new ProductPages(catalogue, { clock, maxPages: 100 });
  await pages.list(Array.from({ length: 140 }, (_, index) => pageOf(`lamp-${index}`)));
  expect(pages.stats()).toMatchObject({ entries: 100, evicted: 40 });
});

it("hands the same page to all, so nobody may change it", async () => {
  const page = await open().page(chair);
  expect(() => Object.assign(page ?? {}, { cents: 1 })).toThrow(TypeError);
});
