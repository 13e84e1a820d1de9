import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { channelForms } from "../channels/forms.ts";
import { ConfigError, describeFault } from "./faults.ts";
import { checkConfig, parseConfig } from "./parse.ts";

const forms = [...channelForms.values()];
const SECRET = `whsec_${Buffer.alloc(24, 7).toString("base64")}`;

interface Draft {
  users: Record<string, unknown>[];
  rules: Record<string, unknown>[];
  templates: Record<string, Record<string, Record<string, unknown>>>;
  [part: string]: unknown;
}

function good(): Draft {
  return {
    users: [
      { id: "ada", email: "ada@example.com", roles: ["dev"], repositories: ["o/r"] },
      { id: "bob", webhook: { url: "https://example.com/hook", secret: SECRET } },
    ],
    rules: [{ name: "all", to: { roles: ["dev"] }, channels: ["email"], template: "plain" }],
    templates: {
      plain: {
        email: { subject: "{{ event.type }}", text: "{{ data.text }}" },
        webhook: { body: "{{ data | json }}" },
      },
    },
  };
}

/** The faults of the good configuration after a change, as a person reads them. */
function faultsAfter(change: (draft: Draft) => void): string[] {
  const draft = good();
  change(draft);
  return checkConfig(draft, forms).map((fault) => describeFault(fault));
}

function faultsOfRule(facts: object): string[] {
  return faultsAfter((draft) => Object.assign(draft.rules[0] ?? {}, facts));
}

function faultsOfTemplate(channel: string, fields: object): string[] {
  return faultsAfter((draft) => Object.assign(draft.templates, { other: { [channel]: fields } }));
}

it("fills in every default", () => {
  expect(parseConfig(good(), forms)).toMatchObject({
    users: [{ roles: ["dev"] }, { roles: [], repositories: [] }],
    rules: [{ when: {}, overLimit: "defer" }],
    limits: {
      perUser: { count: 5, perMs: 60_000 },
      concurrency: { email: 100, webhook: 100 },
      attemptTimeoutMs: 5_000,
      deadlineMs: 900_000,
      retries: 3,
      retryBaseMs: 1_000,
      retryMaxMs: 60_000,
      breaker: { failures: 5, cooldownMs: 30_000 },
      leaseMs: 30_000,
    },
    providers: {},
    intake: { capacity: 10_000, maxBodyBytes: 4_194_304, maxEventBytes: 262_144, maxBatch: 1_000, expanders: 50 },
  });
});

it("keeps what is given, one limit of a group beside the defaults of the others", () => {
  const draft = good();
  draft["limits"] = { concurrency: { email: 7 }, perUser: { count: 1_000_000 }, retries: 0 };
  draft["providers"] = { email: { url: "smtp://localhost:1025", from: "Bot <bot@example.com>" }, webhook: {} };
  const { limits, providers } = parseConfig(draft, forms);
  expect(limits.concurrency).toEqual({ email: 7, webhook: 100 });
  expect(limits.perUser).toEqual({ count: 1_000_000, perMs: 60_000 });
  expect([limits.retries, limits.retryMaxMs]).toEqual([0, 60_000]);
  expect(providers.webhook).toEqual({ allowPrivateNetworks: false });
});

it("tells all faults at once", () => {
  const faults = faultsAfter((draft) => {
    draft.users[0] = { id: "", mail: "x" };
    draft["limits"] = { retries: -1, leaseMs: "long" };
    draft["extra"] = 1;
  });
  expect(faults).toEqual([
    'users[0].id must be 1 to 200 printable characters, without space around, got ""',
    "users[0].mail is not known; known are id, email, webhook, roles, repositories",
    "limits.retries must be >= 0, got -1",
    'limits.leaseMs must be a number, got "long"',
    "extra is not known; known are users, rules, templates, limits, providers, intake",
  ]);
});

it("throws what checkConfig tells", () => {
  const draft = { ...good(), limits: { retries: 0.5 } };
  const attempt = (): unknown => parseConfig(draft, forms);
  expect(attempt).toThrow(ConfigError);
  expect(attempt).toThrow("limits.retries must be an integer, got 0.5");
  expect(checkConfig(good(), forms)).toEqual([]);
});

it.each([
  ["count", 0],
  ["count", 1.5],
  ["count", Infinity],
  ["count", "5"],
  ["perMs", 0],
])("takes no limit with %s %s", (key, value) => {
  const faults = faultsAfter((draft) => (draft["limits"] = { perUser: { [key]: value } }));
  expect(faults.length).toBe(1);
  expect(faults[0]).toMatch(new RegExp(`^limits\\.perUser\\.${key} must be .*, got "?${value}`));
});

it("takes each bound itself, and nothing past it", () => {
  const bounds = [
    ["limits", "retries", 0, 100],
    ["limits", "leaseMs", 100, undefined],
    ["intake", "expanders", 1, 10_000],
  ] as const;
  for (const [part, key, min, max] of bounds) {
    const at = (value: number): string[] => faultsAfter((draft) => (draft[part] = { [key]: value }));
    expect(at(min)).toEqual([]);
    expect(at(min - 1)).toEqual([`${part}.${key} must be >= ${min}, got ${min - 1}`]);
    if (max === undefined) continue;
    expect(at(max)).toEqual([]);
    expect(at(max + 1)).toEqual([`${part}.${key} must be <= ${max}, got ${max + 1}`]);
  }
});

const NOBODY = "rules[0].to must reach somebody: nobody it names has an address for";

describe("a rule", () => {
  it("names users, roles, channels and templates that exist", () => {
    const rule = { to: { users: ["eve"], roles: ["ops"] }, channels: ["email", "pigeon"], template: "fancy" };
    expect(faultsOfRule(rule)).toEqual([
      'rules[0].to.users[0] must be the id of a user, got "eve"',
      'rules[0].to.roles[0] must be a role that some user has, got "ops"',
      'rules[0].channels[1] must be a channel (email, webhook), got "pigeon"',
      'rules[0].template must be a template, got "fancy"',
    ]);
    expect(faultsOfRule({ template: "constructor" })).toEqual([
      'rules[0].template must be a template, got "constructor"',
    ]);
  });

  it("names somebody", () => {
    expect(faultsOfRule({ to: {} })).toEqual(["rules[0].to must name users, roles or followersOf"]);
    expect(faultsOfRule({ to: { users: [] } })).toEqual(["rules[0].to.users must have >= 1 elements, got []"]);
  });

  it("can reach somebody", () => {
    expect(faultsOfRule({ to: { users: ["bob"] } })).toEqual([`${NOBODY} email`]);
    expect(faultsOfRule({ to: { followersOf: "repo" }, channels: ["webhook"] })).toEqual([`${NOBODY} webhook`]);
    expect(faultsOfRule({ to: { users: ["ada"] }, channels: ["webhook", "email"] })).toEqual([]);
  });

  it("names each channel once, and a template with fields for it", () => {
    expect(faultsOfRule({ channels: ["email", "email"] })).toEqual([
      'rules[0].channels must name each channel once, got ["email","email"]',
    ]);
    const faults = faultsAfter((draft) => {
      draft.templates = { plain: { webhook: { body: "{}" } } };
    });
    expect(faults).toEqual(['rules[0].template must have fields for the channel email, got "plain"']);
  });

  it("takes no paths with empty keys and no empty patterns", () => {
    expect(faultsOfRule({ when: { data: { "a..b": ["x"] }, type: [""], source: [] } })).toEqual([
      "rules[0].when.source must have >= 1 elements, got []",
      'rules[0].when.type[0] must have >= 1 characters, got ""',
      'rules[0].when.data["a..b"] must be keys with dots between, such as repository.full_name, got "a..b"',
    ]);
  });
});

describe("a template", () => {
  it("has the fields of its channel and no others", () => {
    expect(faultsOfTemplate("email", { subject: "x", body: "y" })).toEqual([
      "templates.other.email.text is missing",
      "templates.other.email.body is not known; known are subject, text, html",
    ]);
    expect(faultsOfTemplate("fax", { text: "x" })).toEqual([
      "templates.other.fax is no channel; known are email, webhook",
    ]);
  });

  it("compiles", () => {
    const faults = faultsOfTemplate("email", { subject: "{{ x | upcsae }}", text: "{% if x %}" });
    expect(faults[0]).toMatch(/^templates\.other\.email\.subject must compile: undefined filter: upcsae/);
    expect(faults[1]).toMatch(/^templates\.other\.email\.text must compile: tag .* not closed/);
  });

  it("renders without data, so that no event is lost for want of a value", () => {
    const [fault] = faultsOfTemplate("webhook", { body: '{ "n": {{ data.n }} }' });
    expect(fault).toMatch(/^templates\.other\.webhook\.body must also stand an event without data: .* not JSON/);
    expect(faultsOfTemplate("webhook", { body: '{ "n": {{ data.n | json }} }' })).toEqual([]);
  });
});

it("wants ids and rule names to be unique", () => {
  const faults = faultsAfter((draft) => {
    draft.users.push({ id: "ada" });
    draft.rules.push({ ...draft.rules[0] });
  });
  expect(faults).toEqual([
    'users[2].id must be unique, "ada" is users[0]',
    'rules[1].name must be unique, "all" is rules[0]',
  ]);
});

it("wants limits that fit together", () => {
  const faults = faultsAfter((draft) => {
    draft["limits"] = { attemptTimeoutMs: 900_001, retryBaseMs: 5, retryMaxMs: 4, concurrency: { fax: 1 } };
    draft["intake"] = { maxEventBytes: 10, maxBodyBytes: 9, capacity: 3, maxBatch: 4 };
  });
  expect(faults).toEqual([
    "limits.concurrency.fax is no channel; known are email, webhook",
    "limits.attemptTimeoutMs must be <= deadlineMs (900000), got 900001",
    "limits.retryBaseMs must be <= retryMaxMs (4), got 5",
    "intake.maxEventBytes must be <= maxBodyBytes (9), got 10",
    "intake.maxBatch must be <= capacity (3), got 4",
  ]);
  const equal = faultsAfter((draft) => {
    draft["limits"] = { attemptTimeoutMs: 7, deadlineMs: 7, retryBaseMs: 5, retryMaxMs: 5 };
    draft["intake"] = { maxEventBytes: 9, maxBodyBytes: 9, capacity: 3, maxBatch: 3 };
  });
  expect(equal).toEqual([]);
});

it.each(["smtp://", "http://mail.example.com", "mail.example.com"])(
  "takes %s for no mail server, and does not repeat what may hold a password",
  (url) => {
    const email = { url, from: "a@example.com" };
    expect(faultsAfter((draft) => (draft["providers"] = { email }))).toEqual([
      "providers.email.url must be an smtp: or smtps: URL with a host",
    ]);
  },
);

it.each(["a@b\r\nBcc: c@d", "two@a.example, three@a.example", "<a@b", "Bot <>", "nobody"])(
  "takes %j for no sender",
  (from) => {
    const email = { url: "smtp://localhost", from };
    expect(faultsAfter((draft) => (draft["providers"] = { email }))).toEqual([
      `providers.email.from must be an e-mail address, or a name and <address>, got ${JSON.stringify(from)}`,
    ]);
  },
);

it.each(["whsec_", `whsec_${Buffer.alloc(23).toString("base64")}`, `whsec_${Buffer.alloc(65).toString("base64")}`, 5])(
  "takes %s for no secret, and keeps it out of the message",
  (secret) => {
    const webhook = { url: "https://example.com", secret };
    const faults = faultsAfter((draft) => draft.users.push({ id: "eve", webhook }));
    expect(faults.length).toBe(1);
    expect(faults[0]).toMatch(/^users\[2\]\.webhook\.secret must be (whsec_ and 24 to 64 bytes in base64|a text)$/);
  },
);

it.each(["ftp://example.com", "https://u:p@example.com", "https://example.com#x", "/hook", ""])(
  "takes %j for no webhook",
  (url) => {
    const faults = faultsAfter((draft) => draft.users.push({ id: "eve", webhook: { url, secret: SECRET } }));
    expect(faults).toEqual(["users[2].webhook.url must be an http: or https: URL without user, password and fragment"]);
  },
);

it("takes any JSON in the place of any part without losing its composure", () => {
  const part = fc.constantFrom("users", "rules", "templates", "limits", "providers", "intake", "rules.0", "users.0");
  const inPart = fc.property(part, fc.jsonValue(), (path, value) => {
    const draft = good();
    const [list, index] = path.split(".");
    if (index === undefined) (draft as Record<string, unknown>)[path] = value;
    else (draft[list as "users"] as unknown[])[Number(index)] = value;
    for (const { message } of checkConfig(draft, forms)) expect(message).toMatch(/^(must|is) /);
  });
  const inAll = fc.property(fc.jsonValue(), (value) => {
    expect(checkConfig(value, forms).length).toBeGreaterThan(0);
  });
  fc.assert(inPart, { numRuns: 200 });
  fc.assert(inAll, { numRuns: 100 });
});
