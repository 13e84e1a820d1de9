import type { Json } from "@sluice/jobs";
import * as fc from "fast-check";
import { expect, it } from "vitest";
import { isJsonType, parseEvent } from "./cloud-event.ts";

const MAX = 10_000;
const good = { specversion: "1.0", id: "1", source: "/s", type: "a.b" };

function parse(facts: Readonly<Record<string, Json | undefined>>): ReturnType<typeof parseEvent> {
  return parseEvent({ ...good, ...facts }, MAX);
}

/** Where and why, of an event that is refused. */
function refusal(facts: Readonly<Record<string, Json | undefined>>): string[] {
  const parsed = parse(facts);
  return "errors" in parsed ? parsed.errors.map(({ pointer, detail }) => `${pointer} ${detail}`) : ["accepted"];
}

it("reads what the dispatcher needs of an event, and ignores extensions", () => {
  const facts = { subject: "x", time: "2026-01-02T03:04:05.678+01:00", data: { a: [1] } };
  expect(parse({ ...facts, traceparent: "00-1-2-01", datacontenttype: "application/json", dataschema: "/v1" })).toEqual(
    {
      event: { id: "1", source: "/s", type: "a.b", ...facts },
    },
  );
});

it("takes attributes that are unset or null, and data that is null or missing", () => {
  const event = { id: "1", source: "/s", type: "a.b", subject: undefined, time: undefined, data: null };
  expect(parse({})).toEqual({ event });
  expect(parse({ subject: null, time: null, datacontenttype: null, dataschema: null, data: null })).toEqual({ event });
});

it("keeps data of any kind as it is", () => {
  for (const data of [0, false, "", "text", [], {}, [null], { __proto__: null, a: 1 }] as Json[]) {
    const parsed = parse({ data });
    expect("event" in parsed && parsed.event.data).toBe(data);
  }
});

it("tells every fault with its place", () => {
  const faults = refusal({ specversion: "0.3", id: "", source: undefined, type: 5, time: "yesterday" });
  expect(faults).toEqual([
    '#/specversion must be one of "1.0", got "0.3"',
    '#/id must have >= 1 characters, got ""',
    "#/source is missing",
    "#/type must be a text, got 5",
    '#/time must be a time as in RFC 3339, got "yesterday"',
  ]);
  const parsed = parseEvent([], MAX, [7]);
  expect("errors" in parsed && parsed.errors).toEqual([{ pointer: "#/7", detail: "must be a mapping, got []" }]);
});

it.each(["id", "type", "subject", "source"])("bounds the length of %s", (name) => {
  expect(refusal({ [name]: "x".repeat(1_024) })).toEqual(["accepted"]);
  expect(refusal({ [name]: "x".repeat(1_025) })[0]).toMatch(`#/${name} must have <= 1024 characters, got "xxx`);
});

it.each(["a\nb", "\u0000", "\u009f", "\ud800"])("takes no %j in an attribute", (text) => {
  expect(refusal({ id: text })[0]).toMatch("#/id must not have control characters or half characters");
});

it.each(["/s", "https://example.com/a?b=c#d", "urn:uuid:1", "a%20b", "mailto:a@example.com", "//host"])(
  "takes %s for a source",
  (source) => {
    expect(refusal({ source })).toEqual(["accepted"]);
  },
);

it.each(["a b", "<x>", "%zz", "ä", "a\\b"])("takes %j for no source", (source) => {
  expect(refusal({ source })[0]).toMatch("#/source must be a URI reference");
});

it.each([
  "2026-01-02T03:04:05Z",
  "2026-01-02t03:04:05z",
  "2024-02-29T23:59:60.123456789-23:59",
  "0001-01-01T00:00:00+00:00",
])("takes %s for a time", (time) => {
  expect(refusal({ time })).toEqual(["accepted"]);
});

it.each([
  "2026-01-02",
  "2026-01-02T03:04Z",
  "2026-01-02T03:04:05",
  "2026-01-02 03:04:05Z",
  "2026-02-29T00:00:00Z",
  "2026-13-01T00:00:00Z",
  "2026-00-01T00:00:00Z",
  "2026-04-31T00:00:00Z",
  "2026-01-02T24:00:00Z",
  "2026-01-02T03:60:00Z",
  "2026-01-02T03:04:61Z",
  "2026-01-02T03:04:05+24:00",
  "1767323045",
])("takes %s for no time", (time) => {
  expect(refusal({ time })[0]).toMatch("#/time must be a time as in RFC 3339");
});

function encode(text: string | Uint8Array): string {
  return Buffer.from(text as string).toString("base64");
}

it("reads data in base64 as JSON", () => {
  expect(parse({ data_base64: encode('{"a":"ä"}') })).toMatchObject({ event: { data: { a: "ä" } } });
  expect(parse({ data_base64: encode("null") })).toMatchObject({ event: { data: null } });
  expect(refusal({ data_base64: encode("{") })[0]).toMatch("#/data_base64 must be JSON: ");
  expect(refusal({ data_base64: encode(Uint8Array.of(0xff)) })).toEqual(["#/data_base64 must be UTF-8"]);
  expect(refusal({ data_base64: encode("[1e999]") })).toEqual(["#/data_base64 must be a number below 1.8e308"]);
  expect(refusal({ data_base64: "$$$" })).toEqual(['#/data_base64 must be base64, got "$$$"']);
  expect(refusal({ data_base64: encode("1"), data: 1 })).toEqual(["#/data_base64 must not stand beside data"]);
});

it("refuses data that is said to be something else than JSON", () => {
  expect(refusal({ datacontenttype: "text/xml", data: "<x/>" })).toEqual([
    '#/datacontenttype must be application/json or end in +json, got "text/xml"',
  ]);
  for (const type of ["application/json", "Application/JSON; charset=utf-8", "application/vnd.x+json", "text/json"]) {
    expect(isJsonType(type)).toBe(true);
  }
  for (const type of ["", "json", "application/jsonx", "application/x-json", "image/json", "a/b;c=application/json"]) {
    expect(isJsonType(type)).toBe(false);
  }
});

it("bounds an event by its bytes, to the byte", () => {
  const size = Buffer.byteLength(JSON.stringify({ ...good, data: "ä" }));
  expect(parseEvent({ ...good, data: "ä" }, size)).toHaveProperty("event");
  expect(parseEvent({ ...good, data: "ä" }, size - 1)).toEqual({
    reason: "too-large",
    errors: [{ pointer: "#", detail: `must have at most ${size - 1} bytes, got ${size}` }],
  });
});

it("says where in the data the fault is, with keys escaped as a JSON pointer and a URI want it", () => {
  const data = JSON.parse('{"a/b":{"c~d é":[0,1e999]}}') as Json;
  expect(refusal({ data })).toEqual(["#/data/a~1b/c~0d%20%C3%A9/1 must be a number below 1.8e308"]);
});

it("takes any JSON for an event or refuses it, and never throws", () => {
  const attribute = fc.option(fc.oneof(fc.string(), fc.jsonValue()), { nil: undefined });
  const attributes = fc.record({ id: attribute, source: attribute, type: attribute, time: attribute, data: attribute });
  const whole = fc.property(fc.oneof(fc.jsonValue(), attributes), (value) => {
    const sent = JSON.parse(JSON.stringify(value ?? null)) as Json;
    for (const each of [sent, { ...good, ...(sent as object) }] as Json[]) {
      const parsed = parseEvent(each, MAX);
      if ("errors" in parsed) expect(parsed.errors.length).toBeGreaterThan(0);
      else expect(JSON.parse(JSON.stringify(parsed.event.data))).toEqual(parsed.event.data);
    }
  });
  fc.assert(whole, { numRuns: 500 });
});
