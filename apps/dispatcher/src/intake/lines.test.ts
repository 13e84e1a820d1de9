import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { VirtualClock } from "sluice/testing";
import { expect, it } from "vitest";
import { type Accepted, type Event, type EventSink, IntakeFullError } from "../model.ts";
import { acceptFile, acceptLines, type RefusedLine } from "./lines.ts";

/** Accepts each id once. */
class Sink implements EventSink {
  readonly batches: string[][] = [];
  readonly #known = new Set<string>();

  accept(events: readonly Event[]): Promise<Accepted[]> {
    this.batches.push(events.map(({ id }) => id));
    const outcomes = events.map(({ id }): Accepted => {
      if (this.#known.has(id)) return { outcome: "duplicate" };
      this.#known.add(id);
      return { outcome: "accepted" };
    });
    return Promise.resolve(outcomes);
  }
}

function line(id: string, data = ""): string {
  return JSON.stringify({ specversion: "1.0", id, source: "/s", type: "a", data });
}

async function* input(...parts: readonly (string | Uint8Array)[]): AsyncGenerator<Uint8Array> {
  for (const part of parts) yield Buffer.from(part as string);
}

it("accepts an event a line and counts duplicates and refusals", async () => {
  const sink = new Sink();
  const refusals: RefusedLine[] = [];
  const text = `\uFEFF${line("1")}\n\n  \r\n${line("2")}\r\nnonsense\n{"id":"3"}\n${line("1")}\n${line("4")}`;
  const counts = await acceptLines(input(text), {
    sink,
    maxEventBytes: 200,
    onRefused: (refusal) => void refusals.push(refusal),
  });
  expect(counts).toEqual({ accepted: 3, duplicates: 1, refused: 2 });
  expect(sink.batches.flat()).toEqual(["1", "2", "1", "4"]);
  expect(refusals.map((each) => each.line)).toEqual([5, 6]);
  expect(refusals[0]?.errors[0]?.detail).toMatch(/^must be JSON: /);
  expect(refusals[1]?.errors.map(({ pointer }) => pointer)).toEqual(["#/specversion", "#/source", "#/type"]);
});

it("passes over a line that is too long and one that is not UTF-8, and goes on", async () => {
  const sink = new Sink();
  const refusals: RefusedLine[] = [];
  const parts = [line("1", "x".repeat(500)), "\n", Uint8Array.of(0x22, 0xff, 0x22, 0x0a), line("2")];
  const onRefused = (refusal: RefusedLine): void => void refusals.push(refusal);
  const counts = await acceptLines(input(...parts), { sink, maxEventBytes: 200, onRefused });
  expect(counts).toEqual({ accepted: 1, duplicates: 0, refused: 2 });
  expect(refusals.map(({ line: number, errors }) => `${number}: ${errors[0]?.detail}`)).toEqual([
    "1: must have at most 200 bytes",
    "2: must be UTF-8",
  ]);
});

it("hands over batches of at most maxBatch, and holds nothing back for more input", async () => {
  const sink = new Sink();
  const ids = ["1", "2", "3", "4", "5"];
  const parts = [
    `${ids.map((id) => line(id)).join("\n")}\n`,
    `${line("6")}\n${line("7").slice(0, 9)}`,
    line("7").slice(9),
  ];
  await acceptLines(input(...parts), { sink, maxEventBytes: 200, maxBatch: 2 });
  expect(sink.batches).toEqual([["1", "2"], ["3", "4"], ["5"], ["6"], ["7"]]);
});

it("waits for a full intake as long as it says, then offers the same events again", async () => {
  const clock = new VirtualClock();
  const sink = new Sink();
  let refusals = 2;
  const full: EventSink = {
    accept: (events) => (refusals-- > 0 ? Promise.reject(new IntakeFullError(10, 250)) : sink.accept(events)),
  };
  const counting = acceptLines(input(`${line("1")}\n${line("2")}`), {
    sink: full,
    maxEventBytes: 200,
    maxBatch: 1,
    clock,
  });
  await clock.advance(499);
  expect(sink.batches).toEqual([]);
  await clock.advance(1);
  expect(await counting).toEqual({ accepted: 2, duplicates: 0, refused: 0 });
  expect(sink.batches).toEqual([["1"], ["2"]]);
  expect(clock.timers).toBe(0);
});

it("ends a wait for a full intake when the signal aborts, and reads no further", async () => {
  const clock = new VirtualClock();
  const call = new AbortController();
  let isDone = false;
  async function* endless(): AsyncGenerator<Uint8Array> {
    try {
      for (let i = 0; ; i += 1) yield Buffer.from(`${line(`${i}`)}\n`);
    } finally {
      isDone = true;
    }
  }
  const sink: EventSink = { accept: () => Promise.reject(new IntakeFullError(1, 1_000)) };
  const counting = acceptLines(endless(), { sink, maxEventBytes: 200, signal: call.signal, clock });
  const ended = expect(counting).rejects.toBe("enough");
  await clock.advance(1_500);
  call.abort("enough");
  await ended;
  expect([isDone, clock.timers]).toEqual([true, 0]);
});

it("rejects with what the sink says, and so with nothing skipped silently", async () => {
  const failure = new Error("disk full");
  const sink: EventSink = { accept: () => Promise.reject(failure) };
  await expect(acceptLines(input(line("1")), { sink, maxEventBytes: 200 })).rejects.toBe(failure);
});

it("reads files, and says which one it can't", async () => {
  const folder = await mkdtemp(join(tmpdir(), "lines-"));
  try {
    const file = join(folder, "events.jsonl");
    const ids = Array.from({ length: 20_000 }, (_, i) => `${i}`);
    await writeFile(file, ids.map((id) => line(id)).join("\n"));
    const sink = new Sink();
    expect(await acceptFile(file, { sink, maxEventBytes: 200 })).toMatchObject({ accepted: 20_000, refused: 0 });
    expect(sink.batches.flat()).toEqual(ids);
    expect(Math.max(...sink.batches.map(({ length }) => length))).toBe(500);
    const missing = acceptFile(join(folder, "none"), { sink, maxEventBytes: 200 });
    await expect(missing).rejects.toMatchObject({ code: "ENOENT" });
    const reason = new Error("stop");
    const stopped = acceptFile(file, { sink, maxEventBytes: 200, signal: AbortSignal.abort(reason) });
    await expect(stopped).rejects.toBe(reason);
    // Aborted within a piece of the file, and between two of them.
    for (const maxBatch of [100, 1_000_000]) {
      const call = new AbortController();
      const stopping = new Sink();
      const aborting: EventSink = {
        accept: (events) => {
          call.abort(reason);
          return stopping.accept(events);
        },
      };
      const options = { sink: aborting, maxEventBytes: 200, maxBatch, signal: call.signal };
      await expect(acceptFile(file, options)).rejects.toBe(reason);
      expect(stopping.batches.length).toBe(1);
    }
  } finally {
    await rm(folder, { recursive: true });
  }
});
