import { expect, it } from "vitest";
import { ProductPages } from "./cache-layer.ts";
import { Catalogue, LOCALES } from "./catalogue.ts";
import type { Row } from "./database.ts";
import { inLocale, pageOf, priceOn, thing, useShop } from "./shop.stage.ts";

const shop = useShop();

it("F12.3: a change is seen by all who come after it, though an older load is under way", async () => {
  const pages = shop.pages();
  shop.wire.close();
  const older = priceOn(pages);
  await shop.asked(1);
  await shop.reader.all("SELECT 1", []); // so the old price has been read
  await pages.setPrice("north", "chair", 3_900);
  const newer = priceOn(pages);
  shop.wire.open();
  expect([await older, await newer]).toEqual([4_900, 3_900]);
  await shop.settled();
  expect([await priceOn(pages), shop.queries]).toEqual([3_900, 3]);
});

it("forgets a page once its change is written, not before", async () => {
  const pages = shop.pages();
  const lock = shop.lock("IMMEDIATE"); // others may read, none may write
  const change = pages.setPrice("north", "chair", 3_900);
  expect(await priceOn(pages)).toBe(4_900);
  lock.close();
  await change;
  expect(await priceOn(pages)).toBe(3_900);
});

it("forgets a page in all its languages", async () => {
  const pages = shop.pages();
  const keys = LOCALES.map(inLocale);
  await pages.list(keys);
  await pages.setPrice("north", "chair", 3_900);
  expect(await Promise.all(keys.map((key) => priceOn(pages, key)))).toEqual([3_900, 3_900, 3_900]);
});

it("forgets a page though its change failed, since it may have been written all the same", async () => {
  const lossy = new Catalogue(shop.reader, {
    async all(sql, values): Promise<readonly Row[]> {
      await shop.writer.all(sql, values);
      throw new Error("the connection broke");
    },
  });
  const pages = new ProductPages(lossy, { clock: shop.clock });
  expect(await priceOn(pages)).toBe(4_900);
  await expect(pages.setPrice("north", "chair", 3_900)).rejects.toThrow("the connection broke");
  expect(await priceOn(pages)).toBe(3_900);
});

it("asks once in five seconds for what doesn't exist, and finds at once what was added", async () => {
  const pages = shop.pages();
  const table = pageOf("table");
  await Promise.all(Array.from({ length: 300 }, () => pages.page(table)));
  await shop.clock.advance(4_999);
  expect([await pages.page(table), shop.queries]).toEqual([undefined, 1]);
  await pages.add(thing("table", 19_900));
  expect([await priceOn(pages, table), shop.queries]).toEqual([19_900, 2]);
});
