/** The form of a configuration file: what may stand where, in which range, and what holds if it is left out. */
import * as z from "zod";
import type { Config } from "./config.ts";
import { explain, must } from "./explain.ts";
import type { Fault, FaultPath } from "./faults.ts";

/** Sends under way at once, for each channel. */
const CONCURRENCY = 100;

const COUNT = z.int().min(1).max(1_000_000_000);
const DURATION_MS = z.int().min(1);

const NAME = z
  .string()
  .regex(/^[^\s\p{C}](?:[^\p{C}]{0,198}[^\s\p{C}])?$/u, must("be 1 to 200 printable characters, without space around"));
const PATH = z.string().regex(/^[^.]+(?:\.[^.]+)*$/, must("be keys with dots between, such as repository.full_name"));
const PATTERNS = z.array(z.string().min(1).max(1_000)).min(1);
const ADDRESS = /^[^\s\p{C}@<>(),;:\\"]+@[^\s\p{C}@<>(),;:\\"]+$/u;
const SECRET_BYTES = { min: 24, max: 64 };

// The messages about URLs and secrets don't say the value: it may hold a password, and ends up in logs.

const userSchema = z.strictObject({
  id: NAME,
  email: z.string().regex(ADDRESS, must("be an e-mail address")).optional(),
  webhook: z
    .strictObject({
      url: z.string().refine(isHttpUrl, "must be an http: or https: URL without user, password and fragment"),
      secret: z
        .string("must be a text")
        .refine(isSecret, `must be whsec_ and ${SECRET_BYTES.min} to ${SECRET_BYTES.max} bytes in base64`),
    })
    .optional(),
  roles: z.array(NAME).default([]),
  repositories: z.array(NAME).default([]),
});

const ruleSchema = z.strictObject({
  name: NAME,
  when: z
    .strictObject({
      source: PATTERNS.optional(),
      type: PATTERNS.optional(),
      data: z.record(PATH, PATTERNS).optional(),
    })
    .prefault({}),
  to: z
    .strictObject({
      users: z.array(NAME).min(1).optional(),
      roles: z.array(NAME).min(1).optional(),
      followersOf: PATH.optional(),
    })
    .refine((to) => Object.values(to).some((each) => each !== undefined), "must name users, roles or followersOf"),
  channels: z.array(NAME).min(1),
  template: NAME,
  overLimit: z.enum(["defer", "drop"]).default("defer"),
});

const limitsSchema = z.strictObject({
  perUser: z.strictObject({ count: COUNT.default(5), perMs: DURATION_MS.default(60_000) }).prefault({}),
  concurrency: z.record(NAME, z.int().min(1).max(10_000)).default({}),
  attemptTimeoutMs: DURATION_MS.default(5_000),
  deadlineMs: DURATION_MS.default(900_000),
  retries: z.int().min(0).max(100).default(3),
  retryBaseMs: DURATION_MS.default(1_000),
  retryMaxMs: DURATION_MS.default(60_000),
  retryBudget: z
    .strictObject({
      ratio: z.number().min(0).max(100).default(0.2),
      minPerSecond: z.number().min(0).max(1e6).default(10),
    })
    .prefault({}),
  breaker: z.strictObject({ failures: COUNT.default(5), cooldownMs: DURATION_MS.default(30_000) }).prefault({}),
  leaseMs: z.int().min(100).default(30_000),
});

const providersSchema = z.strictObject({
  email: z
    .strictObject({
      url: z.string().refine(isSmtpUrl, "must be an smtp: or smtps: URL with a host"),
      from: z.string().refine(isSender, must("be an e-mail address, or a name and <address>")),
    })
    .optional(),
  webhook: z.strictObject({ allowPrivateNetworks: z.boolean().default(false) }).optional(),
});

const intakeSchema = z.strictObject({
  capacity: COUNT.default(10_000),
  maxBodyBytes: COUNT.default(4 * 1024 * 1024),
  maxEventBytes: COUNT.default(256 * 1024),
  maxBatch: COUNT.default(1_000),
  expanders: z.int().min(1).max(10_000).default(50),
});

const fileSchema = z.strictObject({
  users: z.array(userSchema).min(1),
  rules: z.array(ruleSchema).min(1),
  templates: z.record(NAME, z.record(NAME, z.record(NAME, z.string()))),
  limits: limitsSchema.prefault({}),
  providers: providersSchema.prefault({}),
  intake: intakeSchema.prefault({}),
});

export type Parsed = { readonly config: Config } | { readonly faults: readonly Fault[] };

/** The form alone; what names what is checked in `relations.ts`. */
export function parseForm(value: unknown, channels: readonly string[]): Parsed {
  const result = fileSchema.safeParse(value, { error: explain, reportInput: true });
  if (!result.success) return { faults: result.error.issues.flatMap(faultsOf) };
  const { limits } = result.data;
  const concurrency = Object.fromEntries(channels.map((name) => [name, CONCURRENCY]));
  return { config: { ...result.data, limits: { ...limits, concurrency: { ...concurrency, ...limits.concurrency } } } };
}

function faultsOf(issue: z.core.$ZodIssue): Fault[] {
  const path = issue.path as FaultPath; // JSON and YAML have no symbols
  if (issue.code !== "unrecognized_keys") return [{ path, message: issue.message }];
  return issue.keys.map((key) => ({ path: [...path, key], message: issue.message }));
}

function isHttpUrl(text: string): boolean {
  const url = URL.parse(text);
  if (url === null || !["http:", "https:"].includes(url.protocol)) return false;
  return url.username === "" && url.password === "" && url.hash === "";
}

function isSmtpUrl(text: string): boolean {
  const url = URL.parse(text);
  return url !== null && ["smtp:", "smtps:"].includes(url.protocol) && url.hostname !== "";
}

function isSender(text: string): boolean {
  const [, name = "", bracketed] = /^(.*?)\s*<([^<>]*)>$/.exec(text) ?? [];
  return ADDRESS.test(bracketed ?? text) && !/[\p{C}<>]/u.test(name);
}

function isSecret(text: string): boolean {
  const [, encoded = ""] = /^whsec_((?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?)$/.exec(text) ?? [];
  const { length } = Buffer.from(encoded, "base64");
  return length >= SECRET_BYTES.min && length <= SECRET_BYTES.max;
}
