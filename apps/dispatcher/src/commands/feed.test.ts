import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import type { Event } from "../model.ts";
import { checkEventsFile, feed } from "./feed.ts";

const INTAKE = { capacity: 7, maxBatch: 7, maxBodyBytes: 10_000, maxEventBytes: 10_000, expanders: 1 };

/** Takes everything, and remembers how many came at once. */
function sink() {
  const sizes: number[] = [];
  const accept = async (events: readonly Event[]) => {
    sizes.push(events.length);
    return events.map(() => ({ outcome: "accepted" }) as const);
  };
  return { sizes, accept };
}

const ignore = (): void => {};
const never = new AbortController().signal;

it("hands over no more events at once than a batch of the intake may have", async () => {
  const samples = sink();
  await feed(undefined, samples, INTAKE, ignore, never);
  expect(Math.max(...samples.sizes)).toBe(7);

  const folder = mkdtempSync(join(tmpdir(), "feed-"));
  const file = join(folder, "events.jsonl");
  const event = { specversion: "1.0", source: "/test", type: "thing" };
  writeFileSync(file, Array.from({ length: 20 }, (_, id) => `${JSON.stringify({ ...event, id: `${id}` })}\n`).join(""));
  const lines = sink();
  await feed(file, lines, INTAKE, ignore, never);
  rmSync(folder, { recursive: true });
  expect(lines.sizes).toEqual([7, 7, 6]);
});

it("says that a folder holds no events before anything is started", () => {
  expect(() => checkEventsFile(tmpdir())).toThrow(`can't read the events in ${tmpdir()}: it is a folder`);
});
