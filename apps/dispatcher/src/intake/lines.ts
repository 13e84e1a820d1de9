/**
 * JSON Lines: one CloudEvent a line, from a file or standard input. A bad line is reported and passed over; a full
 * intake is waited for, so a file of any size goes in, as fast as its events are expanded.
 */
import { createReadStream } from "node:fs";
import { addAbortSignal, type Readable } from "node:stream";
import { type Clock, sleep, systemClock } from "sluice";
import { type Accepted, type Event, type EventSink, IntakeFullError } from "../model.ts";
import { type ParsedEvent, parseEvent, type Refusal } from "./cloud-event.ts";
import { parseJson } from "./json.ts";
import { type InputError, pointerTo } from "./problem.ts";
import { splitLines } from "./split-lines.ts";

export interface LinesOptions {
  readonly sink: EventSink;
  /** Of one line; the rest of a longer one is skipped unread. */
  readonly maxEventBytes: number;
  /** Events handed over at once; what one piece of input has is not held back for more. @default 500 */
  readonly maxBatch?: number | undefined;
  readonly onRefused?: ((refusal: RefusedLine) => void) | undefined;
  /** Ends it between two batches, in a wait, or while no input comes; what was accepted stays accepted. */
  readonly signal?: AbortSignal | undefined;
  /** Runs the waits for a full intake. @default systemClock */
  readonly clock?: Clock | undefined;
}

export interface RefusedLine {
  /** From 1. */
  readonly line: number;
  readonly errors: readonly InputError[];
}

export interface LineCounts {
  readonly accepted: number;
  readonly duplicates: number;
  readonly refused: number;
}

const CHUNK_BYTES = 1024 * 1024;

/** `-` is standard input. Rejects with what reading threw, with what the sink threw, or with the signal's reason. */
export async function acceptFile(file: string, options: LinesOptions): Promise<LineCounts> {
  const { signal } = options;
  signal?.throwIfAborted();
  const input: Readable = file === "-" ? process.stdin : createReadStream(file, { highWaterMark: CHUNK_BYTES });
  if (signal !== undefined) addAbortSignal(signal, input);
  try {
    return await acceptLines(input, options);
  } catch (error) {
    signal?.throwIfAborted(); // the stream wraps the reason
    throw error;
  }
}

export async function acceptLines(input: AsyncIterable<Uint8Array>, options: LinesOptions): Promise<LineCounts> {
  const { maxEventBytes, maxBatch = 500, onRefused } = options;
  const counts = { accepted: 0, duplicates: 0, refused: 0 };
  let batch: Event[] = [];

  const flush = async (): Promise<void> => {
    if (batch.length === 0) return;
    for (const { outcome } of await acceptPatiently(batch, options)) {
      counts[outcome === "accepted" ? "accepted" : "duplicates"] += 1;
    }
    batch = [];
  };

  for await (const lines of splitLines(input, maxEventBytes)) {
    for (const { line, bytes } of lines) {
      const parsed = parseLine(bytes, maxEventBytes);
      if (parsed === undefined) continue;
      if ("errors" in parsed) {
        counts.refused += 1;
        onRefused?.({ line, errors: parsed.errors });
        continue;
      }
      batch.push(parsed.event);
      if (batch.length >= maxBatch) await flush();
    }
    await flush();
  }
  return counts;
}

function parseLine(bytes: Uint8Array | undefined, maxBytes: number): ParsedEvent | undefined {
  if (bytes === undefined) return refused(`must have at most ${maxBytes} bytes`, "too-large");
  if (bytes.every(isBlank)) return undefined;
  const json = parseJson(bytes);
  return "fault" in json ? refused(json.fault, "invalid") : parseEvent(json.value, maxBytes);
}

function refused(detail: string, reason: Refusal["reason"]): Refusal {
  return { reason, errors: [{ pointer: pointerTo([]), detail }] };
}

function isBlank(byte: number): boolean {
  return byte === 0x20 || byte === 0x09 || byte === 0x0d;
}

/** Waits for room as long as it takes. */
export async function acceptPatiently(
  batch: readonly Event[],
  options: Pick<LinesOptions, "sink" | "signal" | "clock">,
): Promise<Accepted[]> {
  const { sink, signal, clock = systemClock } = options;
  for (;;) {
    signal?.throwIfAborted();
    try {
      return await sink.accept(batch);
    } catch (error) {
      if (!(error instanceof IntakeFullError)) throw error;
      await sleep(error.retryAfterMs, { signal, clock });
    }
  }
}
