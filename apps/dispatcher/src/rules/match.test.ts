import type { Json } from "@sluice/jobs";
import * as fc from "fast-check";
import { expect, it } from "vitest";
import { channelForms } from "../channels/forms.ts";
import type { Rule } from "../config/config.ts";
import type { Event, Planned, User } from "../model.ts";
import { idleRules, indexRules, plan } from "./match.ts";

const forms = [...channelForms.values()];
const HOOK = { url: "https://example.com", secret: "" };

function user(id: string, facts: Partial<User> = {}): User {
  return { id, email: `${id}@example.com`, roles: [], repositories: [], ...facts };
}

function rule(name: string, facts: Partial<Rule> = {}): Rule {
  return { name, when: {}, to: { users: ["ada"] }, channels: ["email"], template: "t", overLimit: "defer", ...facts };
}

function event(facts: Partial<Event> = {}): Event {
  return { id: "1", source: "/s", type: "a.b", data: {}, ...facts };
}

/** `rule>user` for a plan over one channel. */
function reached(users: readonly User[], rules: readonly Rule[], happened: Event): string[] {
  return plan(happened, indexRules({ users, rules }, forms)).map((each) => `${each.rule}>${each.user}`);
}

it("plans what the rule says", () => {
  const rules = [rule("r", { channels: ["webhook", "email"], template: "x", overLimit: "drop" })];
  const index = indexRules({ users: [user("ada", { webhook: HOOK })], rules }, forms);
  expect(plan(event(), index)).toEqual([
    { user: "ada", channel: "webhook", rule: "r", template: "x", overLimit: "drop" },
    { user: "ada", channel: "email", rule: "r", template: "x", overLimit: "drop" },
  ]);
});

it("asks for all that a rule names: type, source and data", () => {
  const when = { type: ["a.*"], source: ["/s"], data: { "x.y": ["1", "t*"] } };
  const matches = (facts: Partial<Event>): boolean =>
    reached([user("ada")], [rule("r", { when })], event({ data: { x: { y: 1 } }, ...facts })).length === 1;
  expect(matches({})).toBe(true);
  expect(matches({ data: { x: { y: "test" } } })).toBe(true);
  expect(matches({ data: { x: { y: true } } })).toBe(true);
  expect(matches({ type: "b.a" })).toBe(false);
  expect(matches({ source: "/s/t" })).toBe(false);
  expect(matches({ data: { x: { y: 2 } } })).toBe(false);
  expect(matches({ data: { x: null } })).toBe(false);
});

it("reaches whom a rule names by id, by role or as a follower, each once", () => {
  const users = [
    user("ada", { roles: ["dev", "ops"], repositories: ["o/r"] }),
    user("bob", { repositories: ["o/r"] }),
    user("cem", { roles: ["ops"] }),
    user("dan"),
  ];
  const to = { users: ["ada"], roles: ["dev", "ops"], followersOf: "repo" };
  expect(reached(users, [rule("r", { to })], event({ data: { repo: "o/r" } }))).toEqual(["r>ada", "r>cem", "r>bob"]);
  expect(reached(users, [rule("r", { to })], event({ data: { repo: "o/x" } }))).toEqual(["r>ada", "r>cem"]);
  expect(reached(users, [rule("r", { to })], event())).toEqual(["r>ada", "r>cem"]);
});

it("passes over users whom the channel can't reach", () => {
  const users = [user("ada", { email: undefined }), user("bob", { roles: ["dev"] })];
  expect(reached(users, [rule("r", { to: { users: ["ada"], roles: ["dev"] } })], event())).toEqual(["r>bob"]);
});

it("lets the first rule in file order bring an event to a user, for each channel on its own", () => {
  const users = [user("ada", { webhook: HOOK })];
  const rules = [
    rule("miss", { when: { type: ["x"] } }),
    rule("open"),
    rule("literal", { when: { type: ["a.b"] }, channels: ["email", "webhook"] }),
    rule("last", { channels: ["webhook"] }),
  ];
  expect(reached(users, rules, event())).toEqual(["open>ada", "literal>ada"]);
  expect(reached(users, rules, event({ type: "x" }))).toEqual(["miss>ada", "last>ada"]);
});

it("is not misled by types and repositories that are called like parts of every object", () => {
  const users = [user("ada", { repositories: ["constructor"] })];
  const rules = [rule("r", { when: { type: ["toString"] }, to: { followersOf: "repo" } })];
  expect(reached(users, rules, event({ type: "toString", data: { repo: "constructor" } }))).toEqual(["r>ada"]);
  expect(reached(users, rules, event({ type: "valueOf", data: { repo: "__proto__" } }))).toEqual([]);
});

it("tells the rules that reach nobody, whatever the event", () => {
  const users = [user("ada", { roles: ["dev"] }), user("bob", { repositories: ["o/r"], email: undefined })];
  const rules = [
    rule("named"),
    rule("no hook", { channels: ["webhook"] }),
    rule("one of two", { channels: ["webhook", "email"] }),
    rule("followers without address", { to: { followersOf: "repo" } }),
  ];
  expect(idleRules(indexRules({ users, rules }, forms)).map(({ name }) => name)).toEqual([
    "no hook",
    "followers without address",
  ]);
});

it("costs the candidates of an event, not all rules", () => {
  let read = 0;
  const when = { type: ["a.b"], data: { x: ["1"] } };
  const rules = Array.from({ length: 500 }, (_, i) => rule(`${i}`, { when: { ...when, type: [`type.${i}`] } }));
  const index = indexRules({ users: [user("ada")], rules }, forms);
  const data = {
    get x(): Json {
      read += 1;
      return "1";
    },
  };
  expect(plan(event({ type: "type.250", data }), index).map((each) => each.rule)).toEqual(["250"]);
  expect(plan(event({ type: "type.none", data }), index)).toEqual([]);
  expect(read).toBe(1);
});

it("plans what a naive reading of the rules plans", () => {
  const users = fc
    .array(
      fc.record({
        email: maybe(fc.constant("x@example.com")),
        webhook: maybe(fc.constant(HOOK)),
        roles: some("dev", "ops"),
        repositories: some("o/r", "o/s"),
      }),
      { minLength: 1, maxLength: 4 },
    )
    .map((list) => list.map((facts, i) => user(`u${i}`, facts)));
  const rules = fc
    .array(
      fc.record({
        when: fc.record({
          type: maybe(least("a", "b", "a*", "*b", "*")),
          source: maybe(least("/s", "/*")),
          data: maybe(fc.constantFrom({ "x.y": ["1"] }, { "x.y": ["t*"], repo: ["o/*"] })),
        }),
        to: fc.record({
          users: maybe(least("u0", "u3")),
          roles: maybe(least("dev", "ops")),
          followersOf: maybe(fc.constantFrom("repo", "x.repo")),
        }),
        channels: least("email", "webhook"),
      }),
      { minLength: 1, maxLength: 5 },
    )
    .map((list) => list.map((facts, i) => rule(`r${i}`, facts)));
  const happened = fc.record({
    id: fc.constant("1"),
    type: fc.constantFrom("a", "b", "ab", "c", ""),
    source: fc.constantFrom("/s", "/t", "x"),
    data: fc.constantFrom<Json>({}, null, { x: { y: 1, repo: "o/s" } }, { x: { y: true }, repo: "o/r" }),
  });
  const agree = fc.property(users, rules, fc.array(happened, { maxLength: 3 }), (people, list, events) => {
    const index = indexRules({ users: people, rules: list }, forms);
    for (const each of events) {
      const found = plan(each, index);
      expect(found.toSorted(byName)).toEqual(naivePlan(each, people, list).toSorted(byName));
    }
  });
  fc.assert(agree, { numRuns: 500 });
});

function some<T>(...values: T[]): fc.Arbitrary<T[]> {
  return fc.subarray(values);
}

function least<T>(...values: T[]): fc.Arbitrary<T[]> {
  return fc.subarray(values, { minLength: 1 });
}

function maybe<T>(value: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> {
  return fc.option(value, { nil: undefined });
}

function byName(a: Planned, b: Planned): number {
  return JSON.stringify(a) < JSON.stringify(b) ? -1 : 1;
}

/** For each user and channel the first rule that matches and names the user. */
function naivePlan(happened: Event, users: readonly User[], rules: readonly Rule[]): Planned[] {
  const at = (path: string): string =>
    String(
      path.split(".").reduce<unknown>((value, key) => (value as Record<string, unknown> | null)?.[key], happened.data),
    );
  const matches = ({ when }: Rule): boolean =>
    like(when.type, happened.type) &&
    like(when.source, happened.source) &&
    Object.entries(when.data ?? {}).every(([path, patterns]) => like(patterns, at(path)));
  const names = ({ to }: Rule, { id, roles, repositories }: User): boolean =>
    to.users?.includes(id) === true ||
    to.roles?.some((role) => roles.includes(role)) === true ||
    (to.followersOf !== undefined && repositories.includes(at(to.followersOf)));
  return users.flatMap((person) =>
    forms.flatMap((form): Planned[] => {
      if (form.addressOf(person) === undefined) return [];
      const first = rules.find((each) => each.channels.includes(form.name) && matches(each) && names(each, person));
      if (first === undefined) return [];
      const { name, template, overLimit } = first;
      return [{ user: person.id, channel: form.name, rule: name, template, overLimit }];
    }),
  );
}

function like(patterns: readonly string[] | undefined, value: string): boolean {
  return patterns === undefined || patterns.some((each) => new RegExp(`^${each.replaceAll("*", ".*")}$`).test(value));
}
