/** The three ways in which the HTTP binding of CloudEvents carries events: structured, batched, and binary. */
import type { Json } from "@sluice/jobs";
import type { Intake } from "../config/config.ts";
import { isJsonType, type ParsedEvent, parseEvent } from "./cloud-event.ts";
import { parseJson } from "./json.ts";
import { pointerTo, problem } from "./problem.ts";

export type Mode = "structured" | "batched" | "binary";

export type ReadEvents = { readonly parsed: readonly ParsedEvent[] } | { readonly problem: Response };

const SINGLE = "application/cloudevents+json";
const BATCH = "application/cloudevents-batch+json";

/** In binary mode these are headers with `ce-` before their name. */
const ATTRIBUTES = ["specversion", "id", "source", "type", "subject", "time", "dataschema"] as const;

export function modeOf(headers: Headers): Mode | { readonly fault: string } {
  const type = headers.get("content-type") ?? "";
  const [, charset = "utf-8"] = /;\s*charset="?([^;"]*)"?/i.exec(type) ?? [];
  if (charset.toLowerCase() !== "utf-8") return { fault: `the charset must be utf-8, got ${charset}` };
  const encoding = headers.get("content-encoding") ?? "identity";
  if (encoding.toLowerCase() !== "identity") return { fault: `the body must not be encoded, got ${encoding}` };
  const essence = type.split(";", 1).join().trim().toLowerCase();
  if (essence === SINGLE) return "structured";
  if (essence === BATCH) return "batched";
  if (isJsonType(type) && headers.has("ce-specversion")) return "binary";
  return { fault: `the content type must be ${SINGLE}, ${BATCH}, or JSON with ce- headers, got ${type || "none"}` };
}

export function readEvents(mode: Mode, bytes: Uint8Array, headers: Headers, config: Intake): ReadEvents {
  const { maxEventBytes, maxBatch } = config;
  if (mode === "binary") return readBinary(bytes, headers, maxEventBytes);
  const json = parseJson(bytes);
  if ("fault" in json) return { problem: problem("invalid-json", `the body ${json.fault}`) };
  const { value } = json;
  if (mode === "structured") return { parsed: [parseEvent(value, maxEventBytes)] };
  if (!Array.isArray(value)) return { problem: problem("invalid-event", "a batch must be a JSON array") };
  if (value.length > maxBatch) {
    return { problem: problem("too-large", `a batch must have at most ${maxBatch} events, got ${value.length}`) };
  }
  return { parsed: value.map((each: Json, index) => parseEvent(each, maxEventBytes, [index])) };
}

function readBinary(bytes: Uint8Array, headers: Headers, maxEventBytes: number): ReadEvents {
  const attributes: Record<string, Json> = {};
  for (const name of ATTRIBUTES) {
    const value = headers.get(`ce-${name}`);
    if (value === null) continue;
    try {
      attributes[name] = decodeURIComponent(value);
    } catch {
      const errors = [{ pointer: pointerTo([name]), detail: `must be percent-encoded UTF-8, got ${value}` }];
      return { problem: problem("invalid-event", "nothing was accepted", { errors }) };
    }
  }
  const json: ReturnType<typeof parseJson> = bytes.byteLength === 0 ? { value: null } : parseJson(bytes);
  if ("fault" in json) return { problem: problem("invalid-json", `the body ${json.fault}`) };
  return { parsed: [parseEvent({ ...attributes, data: json.value }, maxEventBytes)] };
}
