/**
 * CloudEvents 1.0 in their JSON format (https://github.com/cloudevents/spec), as far as the dispatcher reads them:
 * extension attributes are allowed and ignored, and data that is not JSON is refused, since no rule could look into it.
 */
import type { Json } from "@sluice/jobs";
import * as z from "zod";
import { explain, must } from "../config/explain.ts";
import type { Event } from "../model.ts";
import { faultOf, parseJson } from "./json.ts";
import { type InputError, pointerTo } from "./problem.ts";

export type ParsedEvent = { readonly event: Event } | Refusal;

export interface Refusal {
  readonly reason: "invalid" | "too-large";
  readonly errors: readonly InputError[];
}

/** Of each attribute; the specification sets no limit. */
const MAX_CHARS = 1_024;

const TEXT = z.string().min(1).max(MAX_CHARS).refine(isPlain, must("not have control characters or half characters"));
const SOURCE = TEXT.refine(isUriReference, must("be a URI reference, as in RFC 3986"));

const schema = z.object({
  specversion: z.literal("1.0"),
  id: TEXT,
  source: SOURCE,
  type: TEXT,
  subject: TEXT.nullish(), // unset attributes may be null
  time: z.string().refine(isTimestamp, must("be a time as in RFC 3339")).nullish(),
  datacontenttype: z.string().refine(isJsonType, must("be application/json or end in +json")).nullish(),
  dataschema: SOURCE.nullish(),
  data: z.unknown().optional(),
  data_base64: z.base64(must("be base64")).nullish(),
});

/** An element that stands at `path` in what came in. */
export function parseEvent(value: Json, maxBytes: number, path: readonly PropertyKey[] = []): ParsedEvent {
  const refuse = (at: readonly PropertyKey[], detail: string, reason: Refusal["reason"] = "invalid"): Refusal => ({
    reason,
    errors: [{ pointer: pointerTo([...path, ...at]), detail }],
  });
  const fault = faultOf(value);
  if (fault !== undefined) return refuse(fault.path, fault.detail);
  const bytes = Buffer.byteLength(JSON.stringify(value));
  if (bytes > maxBytes) return refuse([], `must have at most ${maxBytes} bytes, got ${bytes}`, "too-large");
  const parsed = schema.safeParse(value, { error: explain, reportInput: true });
  if (!parsed.success) {
    const errors = parsed.error.issues.map((issue) => ({
      pointer: pointerTo([...path, ...issue.path]),
      detail: issue.message,
    }));
    return { reason: "invalid", errors };
  }
  const { id, source, type, subject, time, data, data_base64: encoded } = parsed.data;
  const event = { id, source, type, subject: subject ?? undefined, time: time ?? undefined };
  if (typeof encoded !== "string") return { event: { ...event, data: (data ?? null) as Json } };
  if (data !== undefined) return refuse(["data_base64"], "must not stand beside data");
  const decoded = parseJson(Buffer.from(encoded, "base64"));
  const inner = "fault" in decoded ? decoded.fault : faultOf(decoded.value)?.detail;
  if (inner !== undefined) return refuse(["data_base64"], inner);
  return { event: { ...event, data: "value" in decoded ? decoded.value : null } };
}

/** `application/json` and what ends in `+json`, whatever its parameters. */
export function isJsonType(type: string): boolean {
  return /^(?:application|text)\/(?:[\w!#$&^.+-]+\+)?json\s*(?:;|$)/i.test(type);
}

/** What the specification's type String leaves out. */
function isPlain(text: string): boolean {
  return text.isWellFormed() && !/\p{Cc}/u.test(text);
}

function isUriReference(text: string): boolean {
  return /^(?:[\w\-.~:/?#[\]@!$&'()*+,;=]|%[\dA-F]{2})+$/i.test(text);
}

function isTimestamp(text: string): boolean {
  const form =
    /^(\d{4})-(\d\d)-(\d\d)T([01]\d|2[0-3]):[0-5]\d:(?:[0-5]\d|60)(?:\.\d+)?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/i;
  const [, year, month, day] = form.exec(text) ?? [];
  if (year === undefined || month === undefined || day === undefined) return false;
  const date = new Date(`${year}-${month}-${day}T00:00:00Z`);
  return date.getUTCDate() === Number(day) && date.getUTCMonth() + 1 === Number(month); // 31 June becomes 1 July
}
