// npm run stress -- jobs-sqlite [--processes N] [--jobs N] [--seeds N] [--json]: several processes add, claim and settle
// on one file at once. Prints for each seed the errors that surfaced, each process's share of the claims and how late the
// event loops were; exits with 1 if a job was lost or done twice, an error surfaced, a share is below 10 %, or the 99th
// percentile of the delay is 50 ms or more.
import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { SqliteStore } from "@sluice/jobs/sqlite";
import { seededRandom } from "sluice/testing";

/** What a process hands in at the end. */
interface Account {
  readonly added: readonly string[];
  readonly done: readonly string[];
  readonly errors: readonly string[];
  /** Each time the event loop was looked at, by how much it was late. */
  readonly delaysMs: readonly number[];
}

interface Verdict {
  readonly seed: number;
  readonly errors: readonly string[];
  readonly lost: number;
  readonly doubled: number;
  /** Of the claims, by process, in per cent. */
  readonly shares: readonly number[];
  readonly p99DelayMs: number;
  readonly durationMs: number;
}

const QUEUE = "stress";
const ADDERS = 20;
const CLAIMERS = 4;
const MAX_CLAIM = 20;
const LOOK_EVERY_MS = 5;
const MIN_SHARE = 10;
const MAX_DELAY_MS = 50;

const { values: options } = parseArgs({
  allowPositionals: true,
  options: {
    processes: { type: "string", default: "4" },
    jobs: { type: "string", default: "10000" },
    seeds: { type: "string", default: "10" },
    json: { type: "boolean", default: false },
    child: { type: "string" },
  },
});

if (options.child === undefined) await runAll(count("processes"), count("jobs"), count("seeds"));
else await work(options.child, count("jobs"), Number(process.env["STRESS_SEED"]));

async function runAll(processes: number, jobs: number, seeds: number): Promise<void> {
  const verdicts: Verdict[] = [];
  for (let seed = 1; seed <= seeds; seed += 1) {
    const verdict = await run(seed, processes, jobs);
    const shares = verdict.shares.map((share) => share.toFixed(1)).join(" ");
    const faults = `${verdict.lost} lost, ${verdict.doubled} doubled, ${verdict.errors.length} errors`;
    const line = `seed ${seed}: ${faults}; shares ${shares} %; p99 delay ${verdict.p99DelayMs.toFixed(1)} ms`;
    console.error(`${line}; ${(verdict.durationMs / 1_000).toFixed(1)} s`);
    for (const error of new Set(verdict.errors)) console.error(`  ${error}`);
    verdicts.push(verdict);
  }
  const total = {
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
  if (options.json) console.log(JSON.stringify({ ...total, runs: verdicts }));
  else
    console.log(
      Object.entries(total)
        .map(([name, value]) => `${name} ${value}`)
        .join(", "),
    );
  process.exitCode = total.passed ? 0 : 1;
}

function isGood({ lost, doubled, errors, shares, p99DelayMs }: Verdict): boolean {
  const isFair = shares.every((share) => share >= Math.min(MIN_SHARE, 100 / shares.length));
  return lost === 0 && doubled === 0 && errors.length === 0 && isFair && p99DelayMs < MAX_DELAY_MS;
}

async function run(seed: number, processes: number, jobs: number): Promise<Verdict> {
  const folder = mkdtempSync(join(tmpdir(), "stress-"));
  const from = performance.now();
  try {
    const file = join(folder, "jobs.db");
    const children = Array.from({ length: processes }, (_, index) => start(file, jobs, seed * 1_000 + index));
    const exits = children.map((child) => once(child, "exit"));
    await all(children, "ready");
    for (const child of children) child.send("go");
    await all(children, "added");
    for (const child of children) child.send("drain");
    const accounts = (await Promise.all(children.map((child) => once(child, "message")))).map(([it]) => it as Account);
    await Promise.all(exits);
    return judge(seed, accounts, performance.now() - from);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function start(file: string, jobs: number, seed: number): ChildProcess {
  return fork(import.meta.filename, ["--child", file, "--jobs", String(jobs)], {
    execArgv: ["--conditions=@sluice/source"],
    env: { ...process.env, STRESS_SEED: String(seed) },
  });
}

async function all(children: readonly ChildProcess[], word: string): Promise<void> {
  const said = await Promise.all(children.map((child) => once(child, "message")));
  for (const [message] of said) if (message !== word) throw new Error(`a process said ${JSON.stringify(message)}`);
}

function judge(seed: number, accounts: readonly Account[], durationMs: number): Verdict {
  const added = accounts.flatMap((account) => account.added);
  const done = accounts.flatMap((account) => account.done);
  const distinct = new Set(done);
  const delays = accounts.map(({ delaysMs }) => delaysMs.toSorted((a, b) => a - b));
  return {
    seed,
    errors: accounts.flatMap(({ errors }) => errors),
    lost: added.filter((id) => !distinct.has(id)).length,
    doubled: done.length - distinct.size,
    shares: accounts.map((account) => (100 * account.done.length) / done.length),
    p99DelayMs: Math.max(...delays.map((sorted) => sorted[Math.floor(sorted.length * 0.99)] ?? 0)),
    durationMs,
  };
}

/** One of the processes. */
async function work(file: string, jobs: number, seed: number): Promise<void> {
  const random = seededRandom(seed);
  const store = await SqliteStore.open({ path: file, retention: { succeededMs: 0 } });
  const account = { added: [] as string[], done: [] as string[], errors: [] as string[], delaysMs: [] as number[] };
  const attempt = async <T>(operation: Promise<T>): Promise<T | undefined> =>
    operation.catch((error: unknown) => void account.errors.push(String(error)));

  const go = once(process, "message");
  process.send?.("ready");
  await go;
  const drain = once(process, "message");
  const state = { draining: false, over: false };
  void drain.then(() => (state.draining = true));

  const add = async (): Promise<void> => {
    for (let left = jobs / ADDERS; left > 0; left -= 1) {
      const priority = Math.floor(random() * 3);
      const added = await attempt(store.add([{ queue: QUEUE, payload: { seed, left }, priority }]));
      account.added.push(...(added ?? []).map(({ id }) => id));
    }
  };
  const claim = async (): Promise<void> => {
    for (;;) {
      const last = state.draining;
      const max = 1 + Math.floor(random() * MAX_CLAIM);
      const claimed = (await attempt(store.claim({ queue: QUEUE, max, leaseMs: 600_000, worker: String(seed) }))) ?? [];
      if (claimed.length === 0 && last) return;
      await sleep(random() * 2);
      const settled = await attempt(store.settle(claimed.map(({ id, token }) => ({ id, token, kind: "complete" }))));
      account.done.push(...claimed.filter((_, index) => settled?.[index] === true).map(({ id }) => id));
    }
  };
  const look = async (): Promise<void> => {
    for (let dueAt = performance.now() + LOOK_EVERY_MS; !state.over; dueAt = performance.now() + LOOK_EVERY_MS) {
      await sleep(LOOK_EVERY_MS);
      account.delaysMs.push(performance.now() - dueAt);
    }
  };

  const looking = look();
  const claiming = Promise.all(Array.from({ length: CLAIMERS }, claim));
  await Promise.all(Array.from({ length: ADDERS }, add));
  process.send?.("added");
  await drain;
  await claiming;
  state.over = true;
  await looking;
  await store.close();
  process.send?.(account satisfies Account);
  process.disconnect();
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
