// npm run stress -- jobs-sqlite [--processes N] [--jobs N] [--seeds N] [--json]: several processes add, claim and settle
// on one file at once. Tells of each seed which errors surfaced, each process's share of the jobs and how late the event
// loops were. Fails if a job was lost or done twice, an error surfaced, a share is below 10 % (or what 9 processes and
// more can have), or the 99th percentile of the delay is 50 ms or more.
import { parseArgs } from "node:util";
import { runGroup, type Verdict } from "./jobs-sqlite/group.ts";

const MIN_SHARE = 10;
const MAX_DELAY_MS = 50;

const { values: options } = parseArgs({
  options: {
    processes: { type: "string", default: "4" },
    jobs: { type: "string", default: "10000" },
    seeds: { type: "string", default: "10" },
    json: { type: "boolean", default: false },
  },
});
const [processes, jobs, seeds] = [count("processes"), count("jobs"), count("seeds")];
const verdicts: Verdict[] = [];
for (let seed = 1; seed <= seeds; seed += 1) {
  const verdict = await runGroup({ seed, processes, jobs });
  verdicts.push(verdict);
  tell(verdict);
}
const result = {
  processes,
  jobs,
  seeds,
  lost: sum(verdicts.map(({ lost }) => lost)),
  doubled: sum(verdicts.map(({ doubled }) => doubled)),
  errors: sum(verdicts.map(({ errors }) => errors.length)),
  minShare: Math.min(...verdicts.flatMap(({ shares }) => shares)),
  p99DelayMs: Math.max(...verdicts.map(({ p99DelayMs }) => p99DelayMs)),
  passed: verdicts.every(isGood),
};
console.log(options.json ? JSON.stringify({ ...result, runs: verdicts }) : summary());
process.exitCode = result.passed ? 0 : 1;

function tell({ seed, lost, doubled, errors, shares, p99DelayMs, durationMs }: Verdict): void {
  const faults = `${lost} lost, ${doubled} doubled, ${errors.length} errors`;
  const percents = shares.map((share) => share.toFixed(1)).join(" ");
  const seconds = (durationMs / 1_000).toFixed(1);
  console.error(`seed ${seed}: ${faults}; shares ${percents} %; p99 delay ${p99DelayMs.toFixed(1)} ms; ${seconds} s`);
  for (const error of new Set(errors)) console.error(`  ${error}`);
}

function isGood({ lost, doubled, errors, shares, p99DelayMs }: Verdict): boolean {
  const isFair = shares.every((share) => share >= Math.min(MIN_SHARE, 90 / shares.length));
  return lost === 0 && doubled === 0 && errors.length === 0 && isFair && p99DelayMs < MAX_DELAY_MS;
}

function summary(): string {
  const faults = `${result.lost} lost, ${result.doubled} doubled, ${result.errors} errors surfaced`;
  const figures = `least share ${result.minShare.toFixed(1)} %, p99 delay ${result.p99DelayMs.toFixed(1)} ms`;
  return `${processes} processes, ${jobs} jobs each, ${seeds} seeds: ${faults}, ${figures}: ${result.passed ? "passed" : "FAILED"}`;
}

function count(name: "processes" | "jobs" | "seeds"): number {
  const value = Number(options[name]);
  if (Number.isSafeInteger(value) && value >= 1) return value;
  console.error(`--${name} must be an integer >= 1, got ${options[name]}`);
  return process.exit(2);
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
