/**
 * A deadline on its way to another process: as the milliseconds that are left, since two machines agree on a duration
 * but not on an instant. The time on the wire is counted by nobody; `reserveMs` makes up for it.
 */
import { checkMs } from "../internal/check.ts";
import { checkDeadline, Deadline, type DeadlineOptions } from "./deadline.ts";

/** The header in which `deadlineHeaders` writes and `deadlineFromHeaders` looks. */
export const DEADLINE_HEADER = "deadline-ms";

export interface DeadlineHeadersOptions {
  /** Kept back for the way there and back. At least 0, and finite. @default 0 */
  readonly reserveMs?: number | undefined;
}

export interface DeadlineFromHeadersOptions extends DeadlineOptions {
  /** The most it gives, whatever the header asks for or lacks. At least 0. @default Infinity */
  readonly maxMs?: number | undefined;
}

/** As `Headers`, or as Node's `request.headers`, whose names are in lower case. */
export type HeaderSource =
  | { get(name: string): string | null }
  | Readonly<Record<string, string | readonly string[] | undefined>>;

/** The header with what is left now, in whole milliseconds; none for a deadline that never comes. */
export function deadlineHeaders(deadline: Deadline, options: DeadlineHeadersOptions = {}): Record<string, string> {
  const reserveMs = checkMs("reserveMs", options.reserveMs ?? 0, { min: 0 });
  const leftMs = Math.floor(Math.max(0, checkDeadline("deadline", deadline).leftMs - reserveMs));
  return leftMs === Infinity ? {} : { [DEADLINE_HEADER]: `${leftMs}` };
}

/**
 * The deadline that whoever calls has set, from now on. The header is a decimal number. Below 0 is 0, which has expired;
 * above `maxMs` is `maxMs`. One that is missing, empty, repeated or anything else than such a number sets none: what a
 * stranger got wrong must not fail the call, and `maxMs` holds all the same.
 */
export function deadlineFromHeaders(headers: HeaderSource, options: DeadlineFromHeadersOptions = {}): Deadline {
  const { maxMs = Infinity } = options;
  return Deadline.after(Math.min(checkMs("maxMs", maxMs), parseLeftMs(valueOf(headers))), options);
}

function valueOf(headers: HeaderSource): unknown {
  return typeof headers["get"] === "function"
    ? headers["get"](DEADLINE_HEADER)
    : (headers as Readonly<Record<string, unknown>>)[DEADLINE_HEADER];
}

function parseLeftMs(value: unknown): number {
  return typeof value === "string" && /^-?\d+(\.\d+)?$/.test(value.trim()) ? Math.max(0, Number(value)) : Infinity;
}
