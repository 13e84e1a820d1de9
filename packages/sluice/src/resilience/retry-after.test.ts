import * as fc from "fast-check";
import { expect, it } from "vitest";
import { parseRetryAfter } from "./retry-after.ts";

const NOW = Date.UTC(1994, 10, 6, 8, 49, 7);

it("reads seconds, without a limit of their own", () => {
  expect(["0", "120", " 7 "].map((header) => parseRetryAfter(header, NOW))).toEqual([0, 120_000, 7_000]);
  expect(parseRetryAfter("9".repeat(400), NOW)).toBe(Number.MAX_SAFE_INTEGER);
});

it.each(["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"])(
  "reads %j, and waits for nothing once it has passed",
  (header) => {
    expect(parseRetryAfter(header, NOW)).toBe(30_000);
    expect(parseRetryAfter(header, NOW + 30_000)).toBe(0);
    expect(parseRetryAfter(header, NOW + 86_400_000)).toBe(0);
  },
);

it("takes a year of two digits for the latest that is not more than 50 years ahead", () => {
  expect(wait("30", 2026)).toBe(Date.UTC(2030, 10, 6, 8, 49, 37) - Date.UTC(2026, 0));
  expect(wait("94", 2026)).toBe(0);
  expect(wait("05", 2060)).toBe(Date.UTC(2105, 10, 6, 8, 49, 37) - Date.UTC(2060, 0));
});

/** From the first day of a year on. */
function wait(year: string, from: number): number | undefined {
  return parseRetryAfter(`Sunday, 06-Nov-${year} 08:49:37 GMT`, Date.UTC(from, 0));
}

it.each([
  null,
  undefined,
  "",
  "soon",
  "-1",
  "1.5",
  "1e3",
  "120 s",
  "2030-01-01T00:00:00Z",
  "Sun, 06 Nox 1994 08:49:37 GMT",
  "Sun, 06 Nov 1994 24:49:37 GMT",
  "Sun, 32 Nov 1994 08:49:37 GMT",
  "Sun, 06 Nov 1994 08:49:37 CET",
  "Sun, 06 Nov 1994 08:49:37 GMT, 120",
])("makes nothing of %j", (header) => {
  expect(parseRetryAfter(header, NOW)).toBe(undefined);
});

it("reads what Date prints, for any instant up to the year 9999", () => {
  const instants = fc.date({ min: new Date(0), max: new Date("9999-12-31T23:59:59Z"), noInvalidDate: true });
  const plans = fc.property(instants, (date) => {
    const wholeMs = Math.floor(date.getTime() / 1_000) * 1_000;
    expect(parseRetryAfter(date.toUTCString(), 0)).toBe(wholeMs);
  });
  fc.assert(plans);
});
