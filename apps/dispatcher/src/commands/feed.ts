/** What the main job takes in by itself: a file, standard input, or GitHub's example payloads. */
import { accessSync, constants, statSync } from "node:fs";
import type { Config } from "../config/config.ts";
import type { Event, EventSink } from "../model.ts";
import { acceptFile, acceptPatiently } from "../intake/lines.ts";
import { githubEvents } from "../samples/github.ts";
import { CommandError, systemReason } from "./failure.ts";

/** At once, where the intake holds that many. */
const BATCH = 500;
/** Refused lines that are told one by one. */
const MAX_TOLD = 20;

export function checkEventsFile(file: string | undefined): void {
  if (file === undefined || file === "-") return;
  try {
    accessSync(file, constants.R_OK);
    if (statSync(file).isDirectory()) throw Object.assign(new Error(), { code: "EISDIR" }); // reading tells it too late
  } catch (error) {
    throw new CommandError(`can't read the events in ${file}: ${systemReason(error)}`, 1, { cause: error });
  }
}

/** Resolves when all of it is accepted, known already, or refused and told. */
export async function feed(
  file: string | undefined,
  sink: EventSink,
  intake: Config["intake"],
  note: (text: string) => void,
  signal: AbortSignal,
): Promise<void> {
  const maxBatch = Math.min(BATCH, intake.maxBatch);
  if (file === undefined) return feedSamples(sink, maxBatch, signal);
  let told = 0;
  const { refused } = await acceptFile(file, {
    sink,
    maxEventBytes: intake.maxEventBytes,
    maxBatch,
    signal,
    onRefused: ({ line, errors }) => {
      told += 1;
      if (told > MAX_TOLD) return;
      const why = errors.map(({ pointer, detail }) => (pointer === "#" ? detail : `${pointer}: ${detail}`)).join("; ");
      note(`line ${line} is refused: ${why}`);
    },
  });
  if (refused > 0) note(`${refused} lines were refused`);
}

async function feedSamples(sink: EventSink, maxBatch: number, signal: AbortSignal): Promise<void> {
  let batch: Event[] = [];
  for await (const event of githubEvents()) {
    if (batch.push(event) < maxBatch) continue;
    await acceptPatiently(batch, { sink, signal });
    batch = [];
  }
  if (batch.length > 0) await acceptPatiently(batch, { sink, signal });
}
