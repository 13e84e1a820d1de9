/**
 * The pages of products, kept for a while in front of the database that has them. A page is read by many and changed by
 * few: whoever changes one does it here, so that the old one is forgotten.
 */
import { batch, Cache, type CacheStats, type Clock, freshness, loadMany, type Random, timeout } from "sluice";
import type { WaitOptions } from "sluice";
import { type Catalogue, LOCALES, type PageKey, type Product, type ProductPage } from "./catalogue.ts";

export interface ProductPagesOptions {
  /** How long a page is good. @default 60_000 */
  readonly ttlMs?: number;
  /** For how long after that it is shown at once while a newer one is being loaded. @default 60_000 */
  readonly staleMs?: number;
  /** For how long it is shown if there is no newer one to be had. @default 600_000 */
  readonly staleOnErrorMs?: number;
  /** Pages at a time. @default 10_000 */
  readonly maxPages?: number;
  /** Told of each load that failed where an old page stood in. */
  readonly onError?: (error: unknown, name: unknown) => void;
  readonly clock?: Clock;
  readonly random?: Random;
}

/** Of a page that doesn't exist. */
type Found = ProductPage | undefined;

export class ProductPages {
  readonly #catalogue: Catalogue;
  readonly #pages: Cache<string, Found>;

  constructor(catalogue: Catalogue, options: ProductPagesOptions = {}) {
    const { ttlMs = 60_000, staleMs = 60_000, staleOnErrorMs = 600_000, maxPages = 10_000 } = options;
    const { onError, clock, random } = options;
    const query = batch<PageKey, Found>(
      async (keys, { signal }) => {
        const [{ tenant, locale }] = keys as [PageKey]; // the same for all: they are of one group
        const products = keys.map(({ product }) => product);
        const found = await catalogue.pages(tenant, locale, products, signal);
        return products.map((product) => found.get(product));
      },
      { keyOf: nameOf, group: ({ tenant, locale }) => JSON.stringify([tenant, locale]), maxSize: 200 },
    );
    const limit = timeout(2_000, { clock }); // of the load, whatever patience those have who wait for it
    this.#catalogue = catalogue;
    this.#pages = new Cache(
      (name, { signal }) => limit.run((context) => query.load(keyOf(name), context), { signal }),
      {
        maxEntries: maxPages,
        ttlMs,
        freshness: freshness({
          staleMs,
          staleOnErrorMs,
          absentTtlMs: 5_000,
          failureTtlMs: 1_000,
          jitter: 0.1,
          onError,
          random,
        }),
        clock,
      },
    );
  }

  /** Undefined if there is no such product. */
  page(key: PageKey, options?: WaitOptions): Promise<ProductPage | undefined> {
    return this.#pages.load(nameOf(key), options);
  }

  /** How each came out, in their order: a page that can't be had doesn't take the list with it. */
  list(keys: readonly PageKey[], signal?: AbortSignal): Promise<PromiseSettledResult<ProductPage | undefined>[]> {
    return loadMany(this.#pages, keys.map(nameOf), { signal });
  }

  async setPrice(tenant: string, product: string, cents: number): Promise<void> {
    try {
      await this.#catalogue.setPrice(tenant, product, cents);
    } finally {
      this.#forget(tenant, product); // after the write, and though it failed: it may have been done all the same
    }
  }

  async add(product: Product): Promise<void> {
    try {
      await this.#catalogue.add([product]);
    } finally {
      this.#forget(product.tenant, product.product); // that there was none is no longer true
    }
  }

  stats(): CacheStats {
    return this.#pages.stats();
  }

  /** In all languages: each of their pages has the price. */
  #forget(tenant: string, product: string): void {
    for (const locale of LOCALES) this.#pages.delete(nameOf({ tenant, locale, product }));
  }
}

/** Not joined by a sign: what a tenant may choose for a name could hold it. */
function nameOf({ tenant, locale, product }: PageKey): string {
  return JSON.stringify([tenant, locale, product]);
}

function keyOf(name: string): PageKey {
  const [tenant, locale, product] = JSON.parse(name) as [string, PageKey["locale"], string];
  return { tenant, locale, product };
}
