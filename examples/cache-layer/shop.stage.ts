/** A shop with a real database, whose answers can be held on their way, and a clock that tests move. */
import { mkdtempSync, rmSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { setImmediate as turn } from "node:timers/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach } from "vitest";
import { Gate } from "sluice";
import { VirtualClock } from "sluice/testing";
import { ProductPages, type ProductPagesOptions } from "./cache-layer.ts";
import { Catalogue, type Locale, type PageKey, type Product } from "./catalogue.ts";
import { Database } from "./database.ts";

export const titles: Readonly<Record<Locale, string>> = { de: "Stuhl", en: "Chair", fr: "Chaise" };
export const chair: PageKey = { tenant: "north", locale: "en", product: "chair" };
export const pageOf = (product: string): PageKey => ({ ...chair, product });
export const inLocale = (locale: Locale): PageKey => ({ ...chair, locale });

export function thing(name: string, cents: number, tenant = "north"): Product {
  return { tenant, product: name, cents, titles };
}

export async function priceOn(pages: ProductPages, key: PageKey = chair): Promise<number | undefined> {
  return (await pages.page(key))?.cents;
}

/** The shop of a file of tests; for each test it has one product. */
export function useShop(): Shop {
  const shop = new Shop();
  beforeAll(() => shop.create());
  beforeEach(() => shop.reset());
  afterAll(() => shop.remove());
  return shop;
}

class Shop {
  readonly #folder = mkdtempSync(join(tmpdir(), "cache-layer-"));
  readonly #file = join(this.#folder, "shop.db");
  readonly reader = new Database(this.#file);
  readonly writer = new Database(this.#file, { busyMs: 10_000 });
  readonly catalogue = new Catalogue({ all: (...question) => this.#ask(...question) }, this.writer);
  clock = new VirtualClock();
  /** Answers of the database come through here, as over a slow wire: while it is closed, they are on their way. */
  wire = new Gate({ open: true });
  failures: string[] = [];
  /** Of the queries so far. */
  signals: (AbortSignal | undefined)[] = [];
  #answers: Promise<unknown>[] = [];
  #before = 0;

  get queries(): number {
    return this.reader.queries - this.#before;
  }

  pages(options: ProductPagesOptions = {}): ProductPages {
    const onError = (error: unknown): void => void this.failures.push(String(error));
    return new ProductPages(this.catalogue, { clock: this.clock, random: () => 0, onError, ...options });
  }

  /** Keeps others from writing, or from reading too, until it is closed. */
  lock(kind: "IMMEDIATE" | "EXCLUSIVE"): DatabaseSync {
    const other = new DatabaseSync(this.#file);
    other.exec(`BEGIN ${kind}`);
    return other;
  }

  /** When the database has been asked so many times. */
  async asked(times: number): Promise<void> {
    while (this.signals.length < times) await turn();
  }

  /** When all answers that are on their way have come, and been kept. */
  async settled(): Promise<void> {
    await turn();
    await Promise.allSettled(this.#answers);
    await turn();
  }

  async create(): Promise<void> {
    await this.writer.all("PRAGMA synchronous = OFF", []); // nothing in here has to outlive the machine
    await this.catalogue.create();
  }

  async reset(): Promise<void> {
    this.clock = new VirtualClock();
    this.wire = new Gate({ open: true });
    [this.failures, this.signals, this.#answers] = [[], [], []];
    for (const table of ["price", "title"]) await this.writer.all(`DELETE FROM ${table}`, []);
    await this.catalogue.add([thing("chair", 4_900)]);
    this.#before = this.reader.queries;
  }

  async remove(): Promise<void> {
    await Promise.all([this.reader.close(), this.writer.close()]);
    rmSync(this.#folder, { recursive: true });
  }

  #ask(...[sql, values, options]: Parameters<Database["all"]>): ReturnType<Database["all"]> {
    const rows = this.#overWire(this.reader.all(sql, values, options));
    this.signals.push(options?.signal ?? undefined);
    this.#answers.push(rows);
    return rows;
  }

  async #overWire<T>(answer: Promise<T>): Promise<T> {
    await Promise.allSettled([answer]);
    await this.wire.wait();
    return answer;
  }
}
