/** What the main job takes in by itself: a file, standard input, or GitHub's example payloads. */
import { accessSync, constants } from "node:fs";
import type { Config } from "../config/config.ts";
import type { Event, EventSink } from "../model.ts";
import { acceptFile, acceptPatiently } from "../intake/lines.ts";
import { githubEvents } from "../samples/github.ts";
import { CommandError, systemReason } from "./failure.ts";

const BATCH = 200;
/** Refused lines that are told one by one. */
const MAX_TOLD = 20;

export function checkEventsFile(file: string | undefined): void {
  if (file === undefined || file === "-") return;
  try {
    accessSync(file, constants.R_OK);
  } catch (error) {
    throw new CommandError(`can't read the events in ${file}: ${systemReason(error)}`, 1, { cause: error });
  }
}

/** Resolves when all of it is accepted, known already, or refused and told. */
export async function feed(
  file: string | undefined,
  sink: EventSink,
  { maxEventBytes }: Config["intake"],
  note: (text: string) => void,
  signal: AbortSignal,
): Promise<void> {
  if (file === undefined) return feedSamples(sink, signal);
  let told = 0;
  const { refused } = await acceptFile(file, {
    sink,
    maxEventBytes,
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

async function feedSamples(sink: EventSink, signal: AbortSignal): Promise<void> {
  let batch: Event[] = [];
  for await (const event of githubEvents()) {
    if (batch.push(event) < BATCH) continue;
    await acceptPatiently(batch, { sink, signal });
    batch = [];
  }
  if (batch.length > 0) await acceptPatiently(batch, { sink, signal });
}
