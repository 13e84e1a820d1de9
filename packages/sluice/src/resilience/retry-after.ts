/** When a server asks to be called again: the `Retry-After` header (RFC 9110, section 10.2.3). */

/**
 * How long to wait, in milliseconds: from a number of seconds, or from an HTTP date in any of its three forms (section
 * 5.6.7) and `wallNow`, the present in milliseconds since the Unix epoch (`clock.wallNow()`). 0 for a date that has
 * passed. Undefined if there is no header or it says nothing of the kind.
 */
export function parseRetryAfter(header: string | null | undefined, wallNow: number): number | undefined {
  const text = header?.trim() ?? "";
  if (/^\d+$/.test(text)) return Math.min(Number(text) * 1_000, Number.MAX_SAFE_INTEGER);
  const at = parseHttpDate(text, wallNow);
  return at === undefined ? undefined : Math.max(0, at - wallNow);
}

const TIME = String.raw`(?<hour>\d\d):(?<minute>\d\d):(?<second>\d\d)`;
const FORMS: readonly RegExp[] = [
  // Sun, 06 Nov 1994 08:49:37 GMT
  new RegExp(String.raw`^[A-Z][a-z]{2}, (?<day>\d\d) (?<month>[A-Z][a-z]{2}) (?<year>\d{4}) ${TIME} GMT$`),
  // Sunday, 06-Nov-94 08:49:37 GMT
  new RegExp(String.raw`^[A-Z][a-z]+day, (?<day>\d\d)-(?<month>[A-Z][a-z]{2})-(?<year>\d\d) ${TIME} GMT$`),
  // Sun Nov  6 08:49:37 1994
  new RegExp(String.raw`^[A-Z][a-z]{2} (?<month>[A-Z][a-z]{2}) (?<day>[ \d]\d) ${TIME} (?<year>\d{4})$`),
];
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const FIFTY_YEARS_MS = 50 * 365.2425 * 86_400_000;

function parseHttpDate(text: string, wallNow: number): number | undefined {
  const groups = FORMS.map((form) => form.exec(text)?.groups).find((found) => found !== undefined);
  if (groups === undefined) return undefined;
  const { month = "", year = "" } = groups;
  const [day = 0, hour = 0, minute = 0, second = 0] = ["day", "hour", "minute", "second"].map((name) =>
    Number(groups[name]),
  );
  const monthIndex = MONTHS.indexOf(month);
  if (monthIndex === -1 || day < 1 || day > 31 || hour > 23 || minute > 59 || second > 60) return undefined;
  // oxlint-disable-next-line no-restricted-globals -- reckons with a date, and reads no clock
  const at = (century: number): number => Date.UTC(century + Number(year), monthIndex, day, hour, minute, second);
  if (year.length === 4) return at(0);
  // Two digits: the latest such year that is not more than 50 years ahead.
  return [2100, 2000, 1900].map(at).find((time) => time <= wallNow + FIFTY_YEARS_MS);
}
