import { expect, it } from "vitest";
import { type PageKey } from "./catalogue.ts";
import { chair, inLocale, pageOf, priceOn, thing, titles, useShop } from "./shop.stage.ts";

const shop = useShop();

it("J19: 300 requests that miss one page together make one query", async () => {
  const pages = shop.pages();
  const found = await Promise.all(Array.from({ length: 300 }, () => priceOn(pages)));
  expect([found.length, new Set(found), shop.queries]).toEqual([300, new Set([4_900]), 1]);
  expect(await priceOn(pages)).toBe(4_900);
  expect(shop.queries).toBe(1);
});

it("J19: without it, as many as there are requests", async () => {
  await Promise.all(Array.from({ length: 300 }, () => shop.catalogue.pages("north", "en", ["chair"])));
  expect(shop.queries).toBe(300);
});

it("J22, F12.5: the product of another shop, or in another language, is another page", async () => {
  await shop.catalogue.add([{ ...thing("chair", 9_900, "south"), titles: { ...titles, en: "Seat" } }]);
  const pages = shop.pages();
  const keys: PageKey[] = [chair, inLocale("fr"), { ...chair, tenant: "south" }];
  const found = await Promise.all(keys.map((key) => pages.page(key)));
  expect(found).toEqual([
    { ...chair, title: "Chair", cents: 4_900 },
    { ...chair, locale: "fr", title: "Chaise", cents: 4_900 },
    { ...chair, tenant: "south", title: "Seat", cents: 9_900 },
  ]);
});

it("J22: no name of a shop makes its pages those of another", async () => {
  await shop.catalogue.add([thing("chair", 1, "a en")]);
  await shop.catalogue.add([thing("en chair", 2, "a")]);
  const pages = shop.pages();
  expect(await priceOn(pages, { tenant: "a en", locale: "en", product: "chair" })).toBe(1);
  expect(await priceOn(pages, { tenant: "a", locale: "en", product: "en chair" })).toBe(2);
});

it("J25: a list takes one query for what isn't there yet, in its own order, and none the second time", async () => {
  const names = Array.from({ length: 50 }, (_, index) => `lamp-${index}`);
  await shop.catalogue.add(names.map((name, index) => thing(name, index)));
  const pages = shop.pages();
  const keys = ["chair", ...names.toReversed(), "missing"].map(pageOf);
  await pages.page(chair);
  for (let time = 1; time <= 2; time += 1) {
    const found = await pages.list(keys);
    const prices = found.map((result) => (result.status === "fulfilled" ? result.value?.cents : "failed"));
    expect(prices).toEqual([4_900, ...names.map((_, index) => index).toReversed(), undefined]);
    expect(shop.queries).toBe(2);
  }
});

it("asks for no more than 200 pages with one query", async () => {
  const keys = Array.from({ length: 401 }, (_, index) => pageOf(`lamp-${index}`));
  await shop.pages().list(keys);
  expect(shop.queries).toBe(3);
});

it("gives what there is of a list when the rest can't be had", async () => {
  const pages = shop.pages();
  await pages.page(chair);
  const lock = shop.lock("EXCLUSIVE");
  const found = await pages.list([pageOf("lamp"), chair]);
  expect(found).toMatchObject([{ status: "rejected" }, { status: "fulfilled", value: { cents: 4_900 } }]);
  lock.close();
});

it("J24: one who leaves takes nobody along; when all have left, the query is no longer wanted", async () => {
  const pages = shop.pages();
  shop.wire.close();
  const [one, other] = [new AbortController(), new AbortController()];
  const waits = [one, other].map(({ signal }) => pages.page(chair, { signal }));
  await shop.asked(1);
  one.abort(new Error("gone"));
  await expect(waits[0]).rejects.toThrow("gone");
  expect(shop.signals.at(-1)?.aborted).toBe(false);
  other.abort(new Error("gone as well"));
  await expect(waits[1]).rejects.toThrow("gone as well");
  expect(shop.signals.at(-1)?.aborted).toBe(true);
  shop.wire.open();
});

it("keeps no more pages than it may", async () => {
  const pages = shop.pages({ maxPages: 100 });
  await pages.list(Array.from({ length: 140 }, (_, index) => pageOf(`lamp-${index}`)));
  expect(pages.stats()).toMatchObject({ entries: 100, evicted: 40 });
});

it("hands the same page to all, so nobody may change it", async () => {
  const page = await shop.pages().page(chair);
  expect(() => Object.assign(page ?? {}, { cents: 1 })).toThrow(TypeError);
});
