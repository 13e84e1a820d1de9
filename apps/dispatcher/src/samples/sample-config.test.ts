import { createHash } from "node:crypto";
import { fileURLToPath } from "node:url";
import { beforeAll, expect, it } from "vitest";
import { channelForms } from "../channels/forms.ts";
import type { Config } from "../config/config.ts";
import { loadConfig } from "../config/load.ts";
import type { Event, Planned } from "../model.ts";
import { indexRules, plan } from "../rules/match.ts";
import { compileTemplates } from "../rules/render.ts";
import { githubEvents } from "./github.ts";

const FILE = fileURLToPath(new URL("../../sample/config.yaml", import.meta.url));
const forms = [...channelForms.values()];

let config: Config;
let planned: { readonly event: Event; readonly each: Planned }[];

beforeAll(async () => {
  config = await loadConfig(FILE, forms);
  const index = indexRules(config, forms);
  const events = new Map((await Array.fromAsync(githubEvents())).map((event) => [event.id, event]));
  planned = [...events.values()].flatMap((event) => plan(event, index).map((each) => ({ event, each })));
});

it("names at least 200 users, numbered, each of whom some event reaches", () => {
  expect(config.users.length).toBeGreaterThanOrEqual(200);
  expect(config.users.map(({ id }) => id)).toEqual(
    config.users.map((_, i) => `user-${String(i + 1).padStart(3, "0")}`),
  );
  for (const { id, email } of config.users) expect([undefined, `${id}@example.com`]).toContain(email);
  expect(new Set(planned.map(({ each }) => each.user)).size).toBe(config.users.length);
});

it("has only secrets that everybody can work out", () => {
  const hooks = config.users.filter(({ webhook }) => webhook !== undefined);
  expect(hooks.length).toBeGreaterThan(50);
  for (const { id, webhook } of hooks) {
    const secret = createHash("sha256").update(`sluice sample ${id}`).digest("base64");
    expect(webhook?.secret).toBe(`whsec_${secret}`);
  }
});

it("has no rule and no channel that the sample events leave unused", () => {
  expect(new Set(planned.map(({ each }) => each.rule))).toEqual(new Set(config.rules.map(({ name }) => name)));
  const used = new Set(planned.map(({ each }) => `${each.template} ${each.channel}`));
  const given = Object.entries(config.templates).flatMap(([template, byChannel]) =>
    Object.keys(byChannel).map((channel) => `${template} ${channel}`),
  );
  expect(used).toEqual(new Set(given));
});

it("lets at least 80 % through at once, defers some and drops some when all events come in one instant", () => {
  const taken = new Map<string, number>();
  const outcomes = { atOnce: 0, defer: 0, drop: 0 };
  for (const { each } of planned) {
    const { user, overLimit } = each;
    const count = (taken.get(user) ?? 0) + 1;
    taken.set(user, count);
    outcomes[count <= config.limits.perUser.count ? "atOnce" : overLimit] += 1;
  }
  expect(planned.length).toBeGreaterThan(700);
  expect(planned.length).toBeLessThan(1_500);
  expect(outcomes.atOnce / planned.length).toBeGreaterThanOrEqual(0.8);
  expect(outcomes.defer).toBeGreaterThan(50);
  expect(outcomes.drop).toBeGreaterThan(50);
  expect(taken.get("user-001")).toBeGreaterThan(100);
});

it("renders every notification, each field with something in it and none with a hole in its subject", () => {
  const users = new Map(config.users.map((user) => [user.id, user]));
  const { renderer } = compileTemplates(config.templates, forms);
  for (const { event, each } of planned) {
    const user = users.get(each.user);
    if (user === undefined) throw new Error(`nobody is ${each.user}`);
    const content = renderer.render(each, event, user);
    for (const text of Object.values(content)) expect(text.trim()).not.toBe("");
    if (content["subject"] !== undefined) expect(content["subject"]).not.toMatch(/\[\]|: *$|^ *:|\[object/);
  }
});
