/** What a value breaks, in our own words: the rule, then the value. */
import * as z from "zod";
import { show } from "./faults.ts";

/** For zod's option `error`: all that has no words of its own. */
export function explain(issue: z.core.$ZodRawIssue): string {
  if (issue.code === "unrecognized_keys") return `is not known; known are ${known(issue.inst).join(", ")}`;
  if (issue.code === "invalid_key") return issue.issues.map(({ message }) => message).join("; ");
  return issue.input === undefined ? "is missing" : `${rule(issue)}, got ${show(issue.input)}`;
}

/** A rule in words of its own, for one check. */
export function must(text: string): { readonly error: (issue: { readonly input?: unknown }) => string } {
  return { error: ({ input }) => `must ${text}, got ${show(input)}` };
}

function rule(issue: z.core.$ZodRawIssue): string {
  if (issue.code === "invalid_type") return `must be ${TYPES[issue.expected] ?? issue.expected}`;
  if (issue.code === "invalid_value") return `must be one of ${issue.values.map(show).join(", ")}`;
  if (issue.code === "too_small") return sized(issue.origin, `>= ${issue.minimum}`);
  if (issue.code === "too_big") return sized(issue.origin, `<= ${issue.maximum}`);
  return issue.message ?? "must be valid";
}

const TYPES: Readonly<Record<string, string>> = {
  int: "an integer",
  number: "a number",
  string: "a text",
  boolean: "true or false",
  array: "a list",
  object: "a mapping",
  record: "a mapping",
};

function sized(origin: string, bound: string): string {
  if (origin === "array") return `must have ${bound} elements`;
  return origin === "string" ? `must have ${bound} characters` : `must be ${bound}`;
}

function known(schema: unknown): string[] {
  return schema instanceof z.ZodObject ? Object.keys(schema.shape) : [];
}
