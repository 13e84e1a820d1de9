/** Several processes on one file: starts them, lets them add and claim at once, and judges what they hand in. */
import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface Plan {
  readonly seed: number;
  readonly processes: number;
  /** That each process adds. */
  readonly jobs: number;
}

/** What a process hands in at the end. */
export interface Account {
  readonly added: readonly string[];
  readonly done: readonly string[];
  readonly errors: readonly string[];
  /** By how much the event loop was late, each time that it was looked at. */
  readonly delaysMs: readonly number[];
}

export interface Verdict {
  readonly seed: number;
  readonly errors: readonly string[];
  readonly lost: number;
  readonly doubled: number;
  /** Of the jobs done, by process, in per cent. */
  readonly shares: readonly number[];
  /** Of the process where it is longest. */
  readonly p99DelayMs: number;
  readonly durationMs: number;
}

/** Orders to a member, and its answer to each. */
export type Word = "ready" | "go" | "added" | "drain";

const MEMBER = join(import.meta.dirname, "member.ts");

export async function runGroup({ seed, processes, jobs }: Plan): Promise<Verdict> {
  const folder = mkdtempSync(join(tmpdir(), "stress-"));
  const from = performance.now();
  const children = Array.from({ length: processes }, (_, index) =>
    fork(MEMBER, [join(folder, "jobs.db"), `${jobs}`, `${seed * 1_000 + index}`], {
      execArgv: ["--conditions=@sluice/source"],
    }),
  );
  try {
    await Promise.all(children.map((child) => hear(child, "ready")));
    await Promise.all(children.map((child) => say(child, "go", "added")));
    const accounts = await Promise.all(
      children.map(async (child) => {
        child.send("drain" satisfies Word);
        const exited = once(child, "exit");
        const [account] = (await once(child, "message")) as [Account];
        await exited;
        return account;
      }),
    );
    return judge(seed, accounts, performance.now() - from);
  } finally {
    for (const child of children) child.kill("SIGKILL");
    rmSync(folder, { recursive: true });
  }
}

async function say(child: ChildProcess, word: Word, answer: Word): Promise<void> {
  child.send(word);
  await hear(child, answer);
}

async function hear(child: ChildProcess, word: Word): Promise<void> {
  const died = new AbortController();
  const onExit = (): void => died.abort(new Error("a process died"));
  child.once("exit", onExit);
  const [message] = (await once(child, "message", { signal: died.signal })) as [Word];
  child.off("exit", onExit);
  if (message !== word) throw new Error(`a process said ${JSON.stringify(message)} where ${word} was due`);
}

function judge(seed: number, accounts: readonly Account[], durationMs: number): Verdict {
  const added = accounts.flatMap((account) => account.added);
  const done = accounts.flatMap((account) => account.done);
  const distinct = new Set(done);
  const sorted = accounts.map(({ delaysMs }) => delaysMs.toSorted((a, b) => a - b));
  return {
    seed,
    errors: accounts.flatMap(({ errors }) => errors),
    lost: added.filter((id) => !distinct.has(id)).length,
    doubled: done.length - distinct.size,
    shares: accounts.map((account) => (100 * account.done.length) / done.length),
    p99DelayMs: Math.max(...sorted.map((delays) => delays[Math.floor(delays.length * 0.99)] ?? 0)),
    durationMs,
  };
}
