import { expect, it } from "vitest";
import { chair, inLocale, pageOf, priceOn, thing, useShop } from "./shop.stage.ts";

const shop = useShop();

it("shows an old page at once, and loads it anew once for all who see it", async () => {
  const pages = shop.pages();
  await pages.page(chair);
  await shop.catalogue.setPrice("north", "chair", 3_900); // by somebody who tells nobody
  await shop.clock.advance(59_999);
  expect([await priceOn(pages), shop.queries]).toEqual([4_900, 1]);
  await shop.clock.advance(1);
  shop.wire.close();
  const shown = await Promise.all(Array.from({ length: 300 }, () => priceOn(pages)));
  expect(new Set(shown)).toEqual(new Set([4_900]));
  shop.wire.open();
  await shop.settled();
  expect([await priceOn(pages), shop.queries]).toEqual([3_900, 2]);
});

it("doesn't show a page that is older than that, but waits for a new one", async () => {
  const pages = shop.pages();
  await pages.page(chair);
  await shop.catalogue.setPrice("north", "chair", 3_900);
  await shop.clock.advance(120_000);
  expect(await priceOn(pages)).toBe(3_900);
});

it("F12.2: shows the old page while the database is locked, asks it once a second, and tells", async () => {
  const pages = shop.pages();
  await pages.page(chair);
  await shop.clock.advance(120_000);
  const lock = shop.lock("EXCLUSIVE");
  const shown = await Promise.all(Array.from({ length: 300 }, () => priceOn(pages)));
  expect([new Set(shown), shop.queries]).toEqual([new Set([4_900]), 2]);
  expect(shop.failures).toEqual(["DatabaseError: database is locked"]);
  await shop.clock.advance(999);
  expect([await priceOn(pages), shop.queries]).toEqual([4_900, 2]);
  lock.close();
  await shop.catalogue.setPrice("north", "chair", 3_900);
  await shop.clock.advance(1);
  await pages.page(chair);
  await shop.settled();
  expect([await priceOn(pages), shop.queries]).toEqual([3_900, 3]);
});

it("F12.1: a failure with no old page to show is told to all, and over after a second", async () => {
  const pages = shop.pages();
  const lock = shop.lock("EXCLUSIVE");
  const found = await Promise.allSettled(Array.from({ length: 300 }, () => pages.page(chair)));
  expect(new Set(found.map(({ status }) => status))).toEqual(new Set(["rejected"]));
  lock.close();
  await expect(pages.page(chair)).rejects.toThrow("database is locked");
  expect(shop.queries).toBe(1);
  await shop.clock.advance(1_000);
  expect([await priceOn(pages), shop.queries]).toEqual([4_900, 2]);
});

it("J24: a load has two seconds, then the old page stands in and the query is no longer wanted", async () => {
  const pages = shop.pages();
  await pages.page(chair);
  await shop.clock.advance(120_000);
  shop.wire.close();
  const shown = priceOn(pages);
  await shop.asked(2);
  await shop.clock.advance(2_000);
  expect(await shown).toBe(4_900);
  expect(shop.failures).toEqual(["TimeoutError: timed out after 2000 ms"]);
  expect(shop.signals.at(-1)?.aborted).toBe(true);
  shop.wire.open();
});

it("finds after five seconds what others have added", async () => {
  const pages = shop.pages();
  const table = pageOf("table");
  await pages.page(table);
  await shop.catalogue.add([thing("table", 19_900)]);
  await shop.clock.advance(5_000);
  await pages.page(table);
  await shop.settled();
  expect(await priceOn(pages, table)).toBe(19_900);
});

it("lets pages that were loaded together end apart", async () => {
  const draws = [0, 1];
  const pages = shop.pages({ random: () => draws.shift() ?? 0 });
  const other = inLocale("fr");
  await pages.page(chair);
  await pages.page(other);
  await shop.clock.advance(54_000);
  await pages.page(chair);
  await shop.settled();
  expect(shop.queries).toBe(2);
  await pages.page(other);
  await shop.settled();
  expect(shop.queries).toBe(3);
});
