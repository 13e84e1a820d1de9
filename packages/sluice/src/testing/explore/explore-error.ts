/** What `explore` rejects with: a schedule under which the scenario goes wrong, in words and to be run again. */
export interface ExploreFinding {
  readonly kind: ExploreKind;
  readonly why: string;
  readonly cause: unknown;
  readonly schedule: readonly string[];
  readonly steps: readonly string[];
}

/** `failed`: a task, the scenario or an invariant threw. `stuck`: nothing could go on, though tasks had not ended. */
export type ExploreKind = "failed" | "stuck";

export class ExploreError extends Error {
  override readonly name = "ExploreError";
  readonly code = "EXPLORE";
  readonly kind: ExploreKind;
  /** For `explore(scenario, { schedule, seed })`, which runs just this. */
  readonly schedule: readonly string[];
  readonly seed: number;
  /** The schedule in words, with what each step gave. */
  readonly steps: readonly string[];
  /** How many schedules were tried, those to make it shorter included. */
  readonly schedules: number;

  constructor(finding: ExploreFinding, seed: number, schedules: number) {
    const lines = finding.steps.map((step, index) => `  ${index + 1}. ${step}`);
    const when = lines.length === 0 ? "from the start" : "when";
    super([`${finding.why}, ${when}`, ...lines].join("\n"), { cause: finding.cause });
    this.kind = finding.kind;
    this.schedule = finding.schedule;
    this.seed = seed;
    this.steps = finding.steps;
    this.schedules = schedules;
  }
}
