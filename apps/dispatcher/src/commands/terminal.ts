/** Where a command writes: results to standard output, everything else to standard error. */
import type { ProgressOutput } from "../report/progress.ts";

export interface Terminal {
  /** A result. */
  print(text: string): void;
  /** What only somebody watching wants to know. */
  note(text: string): void;
  readonly progress: ProgressOutput;
}

export const processTerminal: Terminal = {
  print: (text) => void process.stdout.write(`${text}\n`),
  note: (text) => void process.stderr.write(`${text}\n`),
  progress: process.stderr,
};
