import { expect, type Page, test } from "@playwright/test";
import { bundle } from "./bundle.ts";
import { SearchServer } from "./search-server.ts";

const answers = new Map<string, PromiseWithResolvers<void>>();
let files: ReadonlyMap<string, string>;
let server: SearchServer;

/** Each question is answered when it is let. */
function answer(question: string): PromiseWithResolvers<void> {
  const ready = answers.get(question) ?? Promise.withResolvers<void>();
  answers.set(question, ready);
  return ready;
}

test.beforeAll(async () => {
  files = await bundle();
});

test.beforeEach(async () => {
  answers.clear();
  server = await SearchServer.start(files, (question) => answer(question).promise);
});

test.afterEach(() => server.stop());

const box = (page: Page) => page.getByRole("searchbox");
const status = (page: Page) => page.getByRole("status");
const results = (page: Page) => page.getByRole("listitem");

test("asks once for what was typed fast", async ({ page }) => {
  await page.clock.install({ time: 0 });
  await page.goto(server.url);
  await page.clock.pauseAt(3_600_000);
  await box(page).pressSequentially("oven");
  await page.clock.runFor(249);
  await expect(status(page)).toBeEmpty();
  await page.clock.runFor(1);
  await server.heard("asked", "oven");
  answer("oven").resolve();
  await expect(status(page)).toHaveText("2 for “oven”");
  await expect(results(page)).toHaveText(["oven", "oven glove"]);
  expect(server.asked).toEqual(["oven"]);
});

test("ends the older request, whose answer never takes the place of the newer one's", async ({ page }) => {
  await page.goto(server.url);
  await box(page).fill("o");
  await server.heard("asked", "o");
  await box(page).fill("ov");
  await server.heard("left", "o");
  await server.heard("asked", "ov");
  answer("ov").resolve();
  await expect(status(page)).toHaveText("3 for “ov”");
  answer("o").resolve();
  await box(page).fill("oven");
  await server.heard("asked", "oven");
  answer("oven").resolve();
  await expect(status(page)).toHaveText("2 for “oven”");
  expect([server.asked, server.left]).toEqual([["o", "ov", "oven"], ["o"]]);
});

test("asks at once on Enter, without leaving the page", async ({ page }) => {
  await page.clock.install({ time: 0 });
  await page.goto(server.url);
  await page.clock.pauseAt(3_600_000);
  await box(page).fill("egg");
  await box(page).press("Enter");
  await server.heard("asked", "egg");
  answer("egg").resolve();
  await expect(results(page)).toHaveText(["egg cup"]);
  expect(page.url()).toBe(server.url);
});

test("shows nothing once the box is empty, and ends what was asked", async ({ page }) => {
  await page.goto(server.url);
  await box(page).fill("o");
  await server.heard("asked", "o");
  await box(page).clear();
  await server.heard("left", "o");
  await expect(status(page)).toBeEmpty();
  await expect(results(page)).toHaveCount(0);
});

test("says what went wrong", async ({ page }) => {
  await page.goto(server.url);
  await box(page).fill("!");
  answer("!").resolve();
  await expect(status(page)).toHaveText("“!” could not be looked for: Error: the server answered 500");
});

test("ends what was asked when the page is left", async ({ page }) => {
  await page.goto(server.url);
  await box(page).fill("o");
  await server.heard("asked", "o");
  await page.goto("about:blank");
  await server.heard("left", "o");
});
