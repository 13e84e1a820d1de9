/** The products of a shop with several tenants, each product with a title in each of the languages: what the database has. */
import type { Database } from "./database.ts";

export const LOCALES = ["de", "en", "fr"] as const;
export type Locale = (typeof LOCALES)[number];

/** Everything that a page depends on. */
export interface PageKey {
  readonly tenant: string;
  readonly locale: Locale;
  readonly product: string;
}

/** Handed to many at a time, so nobody may change it. */
export interface ProductPage extends PageKey {
  readonly title: string;
  readonly cents: number;
}

export interface Product {
  readonly tenant: string;
  readonly product: string;
  readonly cents: number;
  readonly titles: Readonly<Record<Locale, string>>;
}

type Connection = Pick<Database, "all">;

const SCHEMA = [
  "CREATE TABLE price (tenant TEXT, product TEXT, cents INTEGER NOT NULL CHECK (cents >= 0), PRIMARY KEY (tenant, product))",
  "CREATE TABLE title (tenant TEXT, product TEXT, locale TEXT, title TEXT NOT NULL, PRIMARY KEY (tenant, product, locale))",
];
const PAGES = `
  SELECT product, title, cents FROM price JOIN title USING (tenant, product)
  WHERE tenant = ? AND locale = ? AND product IN (SELECT value FROM json_each(?))`;
const ADD = [
  `INSERT INTO title SELECT of.value ->> 'tenant', of.value ->> 'product', titles.key, titles.value
   FROM json_each(?) AS of, json_each(of.value -> 'titles') AS titles`,
  "INSERT INTO price SELECT value ->> 'tenant', value ->> 'product', value ->> 'cents' FROM json_each(?)",
];

export class Catalogue {
  readonly #reader: Connection;
  readonly #writer: Connection;

  constructor(reader: Connection, writer: Connection) {
    this.#reader = reader;
    this.#writer = writer;
  }

  async create(): Promise<void> {
    for (const sql of SCHEMA) await this.#writer.all(sql, []);
  }

  /** Those that exist, by product, with one query. */
  async pages(
    tenant: string,
    locale: Locale,
    products: readonly string[],
    signal?: AbortSignal,
  ): Promise<ReadonlyMap<string, ProductPage>> {
    const rows = await this.#reader.all(PAGES, [tenant, locale, JSON.stringify(products)], { signal });
    return new Map(
      rows.map((row) => {
        const { product, title, cents } = row as { product: string; title: string; cents: number };
        return [product, Object.freeze({ tenant, locale, product, title, cents })];
      }),
    );
  }

  /** Titles first: what has no price is not for sale yet. */
  async add(products: readonly Product[]): Promise<void> {
    const list = JSON.stringify(products);
    for (const sql of ADD) await this.#writer.all(sql, [list]);
  }

  async setPrice(tenant: string, product: string, cents: number): Promise<void> {
    await this.#writer.all("UPDATE price SET cents = ? WHERE tenant = ? AND product = ?", [cents, tenant, product]);
  }
}
