/** How far a run has come: one block that is drawn over itself on a terminal, a line now and then elsewhere. */
import { type Clock, type Schedule, schedule, systemClock } from "sluice";
import { SETTLED_STATUSES, type RunCounts } from "../dispatch/run-counts.ts";
import type { Standing } from "../storage/reader.ts";
import { count } from "./numbers.ts";

export interface ProgressOutput {
  write(text: string): unknown;
  readonly isTTY?: boolean | undefined;
}

export interface ProgressSource {
  readonly counts: RunCounts;
  standing(): Standing;
}

const OPEN_STATUSES = ["queued", "sending"] as const;
const BLOCK_MS = 100;
const LINE_MS = 2_000;

export class Progress {
  readonly #output: ProgressOutput;
  readonly #source: ProgressSource;
  readonly #clock: Clock;
  #drawing: Schedule | undefined;
  #drawn = "";

  constructor(output: ProgressOutput, source: ProgressSource, clock: Clock = systemClock) {
    this.#output = output;
    this.#source = source;
    this.#clock = clock;
  }

  /** Idempotent. */
  start(): void {
    const everyMs = this.#isBlock ? BLOCK_MS : LINE_MS;
    this.#drawing ??= schedule({ everyMs }, () => this.#draw(), { clock: this.#clock, background: true });
  }

  /** Draws the last state and leaves it there. Idempotent. */
  stop(): void {
    if (this.#drawing === undefined) return;
    this.#drawing.abort();
    this.#drawing = undefined;
    this.#draw();
    this.#drawn = "";
  }

  /** Writes a line of somebody else's, above the block. */
  note(text: string): void {
    this.#output.write(`${this.#erase()}${text}\n`);
    const block = this.#drawn;
    this.#drawn = "";
    if (block !== "" && this.#isBlock) this.#draw();
  }

  #draw(): void {
    const text = this.#isBlock ? progressBlock(this.#source) : progressLine(this.#source);
    if (text === this.#drawn) return;
    this.#output.write(`${this.#erase()}${text}`);
    this.#drawn = text;
  }

  /** What takes the block away. */
  #erase(): string {
    const height = this.#isBlock ? this.#drawn.split("\n").length - 1 : 0;
    return height > 0 ? `\x1b[${height}A\x1b[J` : "";
  }

  get #isBlock(): boolean {
    return this.#output.isTTY === true;
  }
}

function progressLine(source: ProgressSource): string {
  const { counts } = source;
  const { waiting, notifications } = source.standing();
  const pending = [...notifications.values()].flatMap((by) => OPEN_STATUSES.map((status) => by.get(status) ?? 0));
  const open = pending.reduce((sum, n) => sum + n, 0);
  const settled = SETTLED_STATUSES.map((status) => `${count(counts.count(status))} ${status}`);
  return `${count(counts.events)} events (${count(waiting)} waiting), ${count(open)} to send, ${settled.join(", ")}\n`;
}

function progressBlock(source: ProgressSource): string {
  const { counts } = source;
  const { waiting, notifications } = source.standing();
  const channels = [...new Set([...notifications.keys(), ...counts.channels()])].toSorted();
  const rows = channels.map((channel) => {
    const open = OPEN_STATUSES.map((status) => notifications.get(channel)?.get(status) ?? 0);
    const settled = SETTLED_STATUSES.map((status) => counts.count(status, channel));
    return [channel].concat(open.concat(settled).map(count));
  });
  const table = [["", ...OPEN_STATUSES, ...SETTLED_STATUSES], ...rows];
  const lines = table.map(
    ([name = "", ...cells]) => `  ${name.padEnd(10)}${cells.map((c) => c.padStart(11)).join("")}`,
  );
  return `${count(counts.events)} events accepted, ${count(waiting)} waiting to be expanded\n${lines.join("\n")}\n`;
}
