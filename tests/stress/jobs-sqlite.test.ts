import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { DatabaseSync } from "node:sqlite";
import { Worker, type JobRecord } from "@sluice/jobs";
import { SqliteStore } from "@sluice/jobs/sqlite";
import { expect, it, onTestFinished } from "vitest";
import { runGroup } from "./jobs-sqlite/group.ts";

const QUEUE = "victim";
const LIMIT = { timeout: 120_000 }; // processes start slowly where much else runs

it("loses nothing, doubles nothing and lets no SQLITE_BUSY out when three processes share a file", LIMIT, async () => {
  const { errors, lost, doubled, shares } = await runGroup({ seed: 1, processes: 3, jobs: 500 });
  expect({ errors, lost, doubled }).toEqual({ errors: [], lost: 0, doubled: 0 });
  expect(Math.min(...shares)).toBeGreaterThan(0);
});

it("C174: six processes on one file do each of 2 000 jobs once", LIMIT, async () => {
  const { errors, lost, doubled } = await runGroup({ seed: 2, processes: 6, jobs: 334 });
  expect({ errors, lost, doubled }).toEqual({ errors: [], lost: 0, doubled: 0 });
});

it.each([1, 40, 333])("has every acknowledged job after a kill -9 at the %d. acknowledgement", LIMIT, async (count) => {
  const path = temporaryFile();
  const acknowledged = await killed(path, "add", count);
  const kept = new Set((await all(path)).map(({ id }) => id));
  expect(acknowledged.filter((id) => !kept.has(id))).toEqual([]);
  expect(checked(path)).toBe("ok");
});

it(
  "is made by three processes that open it at once, and has what each of them acknowledged before its kill -9",
  LIMIT,
  async () => {
    const path = temporaryFile();
    const acknowledged = (await Promise.all([1, 20, 60].map((count) => killed(path, "add", count)))).flat();
    const kept = new Set((await all(path)).map(({ id }) => id));
    expect(acknowledged.filter((id) => !kept.has(id))).toEqual([]);
    expect(new Set(acknowledged).size).toBe(acknowledged.length);
    expect(checked(path)).toBe("ok");
  },
);

it("has every acknowledged completion after a kill -9, and of the others nothing half done", LIMIT, async () => {
  const path = temporaryFile();
  const store = await SqliteStore.open({ path, durability: "normal" });
  await store.add(Array.from({ length: 2_000 }, (_, index) => ({ queue: QUEUE, payload: index })));
  await store.close();
  const acknowledged = new Set(await killed(path, "settle", 200));
  const jobs = await all(path);
  expect(jobs.length).toBe(2_000);
  for (const { id, state, attempts, result } of jobs) {
    if (acknowledged.has(id)) expect([state, attempts, result]).toEqual(["succeeded", 1, id]);
    else
      expect([state, attempts, result]).toBeOneOf([
        ["succeeded", 1, id], // it was, and the kill came before the line
        ["running", 1, undefined],
        ["ready", 0, undefined],
      ]);
  }
  expect(checked(path)).toBe("ok");
});

it(
  "C182: a job whose process was killed starts again elsewhere, and one without attempts left is dead of a crash",
  LIMIT,
  async () => {
    const path = temporaryFile();
    const store = await SqliteStore.open({ path });
    onTestFinished(() => store.close());
    await store.add([1, 4].map((maxAttempts) => ({ queue: QUEUE, payload: maxAttempts, maxAttempts })));
    expect(await killed(path, "hold", 2)).toEqual(["1", "2"]);
    const attempt = await new Promise((resolve) => {
      const worker = new Worker(store, QUEUE, (job) => resolve([job.id, job.attempt]), { leaseMs: 300, pollMs: 50 });
      onTestFinished(async () => void (await worker.stop()));
      worker.start();
    });
    expect(attempt).toEqual(["2", 2]);
    const crash = { kind: "crash", attempt: 1, message: "the lease lapsed" };
    expect(await store.get("1")).toMatchObject({ state: "dead", reason: "the lease lapsed", errors: [crash] });
    expect(await store.get("2")).toMatchObject({ crashes: 1, errors: [crash] });
  },
);

/** Kills it once it has said `count` lines; what it said. */
async function killed(path: string, role: "add" | "settle" | "hold", count: number): Promise<string[]> {
  const victim = join(import.meta.dirname, "jobs-sqlite/victim.ts");
  const child = spawn(process.execPath, ["--conditions=@sluice/source", victim, path, role], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const said: string[] = [];
  for await (const line of createInterface({ input: child.stdout })) {
    said.push(line);
    if (said.length === count) child.kill("SIGKILL");
  }
  if (child.signalCode === null) await once(child, "exit");
  expect(child.signalCode).toBe("SIGKILL");
  return said;
}

async function all(path: string): Promise<JobRecord[]> {
  const store = await SqliteStore.open({ path });
  const jobs: JobRecord[] = [];
  for (let page = await store.list({}); page.length > 0; page = await store.list({}, { after: jobs.at(-1)?.id }))
    jobs.push(...page);
  await store.close();
  return jobs;
}

function checked(path: string): unknown {
  const db = new DatabaseSync(path);
  const result = db.prepare("PRAGMA integrity_check").get();
  db.close();
  return result?.["integrity_check"];
}

function temporaryFile(): string {
  const folder = mkdtempSync(join(tmpdir(), "sqlite-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return join(folder, "jobs.db");
}
