/** A call in line that asks for more than a slot; those that don't stand there as their function alone. */
import { checkMs, checkOneOf } from "../../internal/check.ts";
import type { Wait } from "../../internal/wait.ts";
import type { Task } from "../../policy.ts";
import type { LimiterRunOptions } from "./options.ts";
import type { Run } from "./run.ts";
import type { Granted } from "./runner.ts";

/** What stands in line, and its place there. */
export type Work = Task<unknown> | Request;
export type Place = Wait<Granted, Work>;

export class Request {
  readonly task: Task<unknown>;
  readonly weight: number;
  readonly id: unknown;
  readonly maxRunMs: number;
  readonly releasesSlot: boolean;
  /** While it is in line. */
  wait: Place | undefined = undefined;
  /** The call from within which it was made. */
  within: Run | undefined = undefined;

  /** Whether a call with these options can't stand in line as its function alone. */
  static isNeeded({ weight = 1, id, maxRunMs = Infinity }: LimiterRunOptions): boolean {
    return weight !== 1 || id !== undefined || maxRunMs !== Infinity;
  }

  constructor(
    task: Task<unknown>,
    { weight = 1, id, maxRunMs = Infinity, whenOverdue = "keep-slot" }: LimiterRunOptions,
  ) {
    this.task = task;
    this.weight = weight;
    this.id = id;
    this.maxRunMs = checkMs("maxRunMs", maxRunMs);
    this.releasesSlot = checkOneOf("whenOverdue", whenOverdue, ["keep-slot", "release-slot"]) === "release-slot";
  }
}

export function weightOf(work: Work): number {
  return work instanceof Request ? work.weight : 1;
}
