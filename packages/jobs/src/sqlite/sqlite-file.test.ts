import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { promisify } from "node:util";
import { VirtualClock } from "sluice/testing";
import { afterAll, describe, expect, it, onTestFinished } from "vitest";
import { storeCases, type OpenedStore } from "../conformance/index.ts";
import type { Claim, ClaimedJob } from "../job.ts";
import type { StoreOptions } from "../store.ts";
import { StoreBusyError, StoreFailedError, StoreOpenError } from "./errors.ts";
import { SqliteStore, type SqliteStoreOptions } from "./sqlite-store.ts";

const QUEUE = "mail";

describe("keeps the rules of every store:", () => {
  // A thread takes a fifth of a second to start, so that cases with the same options get one store, emptied between.
  const opened = new Map<string, OpenedStore>();
  const cases = storeCases(async (options) => {
    const key = JSON.stringify(options);
    const found = opened.get(key) ?? (await openShared(options, () => opened.delete(key)));
    opened.set(key, found);
    return found;
  });
  for (const { title, run } of cases) it(title, run);

  afterAll(() => Promise.all([...opened.values()].map(({ store }) => store.close())));
});

it("has on disk what it acknowledged, before anybody closes it", async () => {
  const { store, path } = await open();
  await store.add([{ queue: QUEUE, payload: 1 }]);
  const db = new DatabaseSync(path, { readOnly: true });
  expect(db.prepare("SELECT queue, payload FROM sluice_jobs").all()).toEqual([{ queue: QUEUE, payload: "1" }]);
  db.close();
});

it("gives neither an id nor a token twice, also when the jobs are gone and the store was opened anew", async () => {
  const path = temporaryFile();
  const seen: [string, number][] = [];
  for (let round = 0; round < 2; round += 1) {
    const store = await SqliteStore.open({ path, durability: "normal", retention: { succeededMs: 0 } });
    await store.add([1, 2].map((payload) => ({ queue: QUEUE, payload })));
    for (const { id, token } of await claim(store)) {
      seen.push([id, token]);
      await store.settle([{ id, token, kind: "complete" }]);
    }
    expect(await store.list({})).toEqual([]);
    await store.close();
  }
  expect(seen.map(([id]) => id)).toEqual(["1", "2", "3", "4"]);
  expect(seen.map(([, token]) => token)).toEqual([1, 2, 3, 4]);
});

it("removes a job's errors with the job, whether it is pruned or removed at its end", async () => {
  for (const succeededMs of [0, 1]) {
    const { store, clock, path } = await open({ retention: { succeededMs } });
    await store.add([{ queue: QUEUE, payload: 1 }]);
    const [first] = await claim(store);
    await store.settle([{ ...claimOf(first), kind: "fail", error: "not yet", retryInMs: 0 }]);
    const [second] = await claim(store);
    const db = new DatabaseSync(path, { readOnly: true });
    expect(db.prepare("SELECT message FROM sluice_job_errors").all()).toEqual([{ message: "not yet" }]);
    await store.settle([{ ...claimOf(second), kind: "complete" }]);
    await clock.advance(1);
    expect(await store.prune()).toBe(succeededMs);
    expect(db.prepare("SELECT * FROM sluice_job_errors").all()).toEqual([]);
    db.close();
  }
});

it("prunes in steps as many as there are", async () => {
  const { store, clock } = await open({ retention: { succeededMs: 5 } });
  await store.add(Array.from({ length: 2_500 }, (_, index) => ({ queue: QUEUE, payload: index })));
  expect(await store.cancel({ queue: QUEUE })).toBe(2_500);
  await clock.advance(5);
  expect(await store.prune()).toBe(2_500);
  expect(await store.list({})).toEqual([]);
});

it("lets the event loop go on while another process holds the write lock", async () => {
  const { store, path } = await open();
  await store.add([{ queue: QUEUE, payload: 1 }]);
  const other = new DatabaseSync(path);
  other.exec("BEGIN IMMEDIATE");
  const log: string[] = [];
  const added = store.add([{ queue: QUEUE, payload: 2 }]).then(() => log.push("added"));
  await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
  log.push("turned");
  other.exec("COMMIT");
  other.close();
  await added;
  expect(log).toEqual(["turned", "added"]);
});

it("rejects with StoreBusyError when another process keeps the lock for busyTimeoutMs, and goes on later", async () => {
  const { store, path } = await open({ busyTimeoutMs: 20 });
  const other = new DatabaseSync(path);
  other.exec("BEGIN IMMEDIATE");
  const rejected = await store.add([{ queue: QUEUE, payload: 1 }]).catch((error: unknown) => error);
  expect(rejected).toBeInstanceOf(StoreBusyError);
  expect(rejected).toMatchObject({ code: "STORE_BUSY", waitedMs: expect.any(Number) });
  other.exec("COMMIT");
  other.close();
  expect(await store.add([{ queue: QUEUE, payload: 1 }])).toMatchObject([{ outcome: "created" }]);
});

it("ends its close though another process keeps the file locked, and rejects what could not be written", async () => {
  const path = temporaryFile();
  const store = await SqliteStore.open({ path, busyTimeoutMs: 3_600_000 });
  const other = new DatabaseSync(path);
  other.exec("BEGIN IMMEDIATE");
  const added = store.add([{ queue: QUEUE, payload: 1 }]);
  const rejected = expect(added).rejects.toThrow(StoreBusyError);
  await store.close();
  await rejected;
  other.close();
});

it("rejects with StoreOpenError where there can be no store, with the path and the reason", async () => {
  const opened = await SqliteStore.open({ path: tmpdir() }).catch((error: unknown) => error);
  expect(opened).toBeInstanceOf(StoreOpenError);
  expect(opened).toMatchObject({ path: tmpdir(), reason: "it is a folder", cause: { code: "ERR_SQLITE_ERROR" } });
});

describe("procedures", () => {
  const source = `
    let opened = 0;
    export default {
      migrations: ["CREATE TABLE totals (queue TEXT PRIMARY KEY, n INTEGER NOT NULL)"],
      prepare(db) {
        opened += 1;
        const count = db.prepare("INSERT INTO totals VALUES (?, 1) ON CONFLICT (queue) DO UPDATE SET n = n + 1 RETURNING n");
        return {
          addCounted({ queue, fail }, jobs) {
            const total = count.get(queue).n;
            const added = jobs.add([{ queue, payload: { total }, uniqueKey: "k" + total }]);
            if (fail) throw Object.assign(new TypeError("not this one"), { code: "NOT_THIS", total });
            return { total, added, now: jobs.now, opened };
          },
          finish({ claim }, jobs) {
            const held = jobs.holds(claim);
            return { held, settled: jobs.settle([{ ...claim, kind: "complete" }]), holds: jobs.holds(claim) };
          },
          badJob: (_, jobs) => jobs.add([{ queue: "", payload: null }]),
          uncopied: () => ({ f() {} }),
          echo: (input) => input,
          exit: () => process.exit(3),
          crash: () => void queueMicrotask(() => { throw new Error("by itself"); }),
          hang: () => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0),
        };
      },
    };`;
  const procedures = module(source);

  it("commit with the jobs that they add, and wake those who wait for them", async () => {
    const { store, clock } = await open({ procedures });
    const heard: string[] = [];
    store.onReady((queue) => heard.push(queue));
    const result = await store.call("addCounted", { queue: QUEUE });
    expect(result).toEqual({ total: 1, added: [{ id: "1", outcome: "created" }], now: clock.wallNow(), opened: 1 });
    expect(heard).toEqual([QUEUE]);
    expect(await claim(store)).toMatchObject([{ payload: { total: 1 } }]);
  });

  it("leave nothing when they throw, and the caller gets the error's name, message and fields", async () => {
    const { store } = await open({ procedures });
    const calls = [false, true, false].map((fail) => store.call("addCounted", { queue: QUEUE, fail }));
    const [first, second, third] = await Promise.allSettled(calls);
    expect(first).toMatchObject({ value: { total: 1 } });
    expect(second).toMatchObject({
      reason: { name: "TypeError", message: "not this one", code: "NOT_THIS", total: 2, stack: expect.any(String) },
    });
    expect(third).toMatchObject({ value: { total: 2, added: [{ id: "2", outcome: "created" }] } });
  });

  it("settle a job only while its claim holds", async () => {
    const { store, clock } = await open({ procedures });
    await store.add([{ queue: QUEUE, payload: 1 }]);
    const [old] = await claim(store);
    await clock.advance(2_000);
    await store.sweep();
    const [fresh] = await claim(store);
    expect(await store.call("finish", { claim: old })).toEqual({ held: false, settled: [false], holds: false });
    expect(await store.call("finish", { claim: fresh })).toEqual({ held: true, settled: [true], holds: false });
  });

  it("are held to the same rules for their jobs as everybody", async () => {
    const { store } = await open({ procedures });
    await expect(store.call("badJob")).rejects.toThrow("jobs[0].queue must have 1 to 255 characters, got 0");
  });

  it("work on copies, also in memory", async () => {
    for (const path of [temporaryFile(), ":memory:"]) {
      const store = await SqliteStore.open({ path, procedures });
      const input = { when: new Date(0), nested: { list: [1] } };
      const output = (await store.call("echo", input)) as typeof input;
      expect(output).toEqual(input);
      expect(output.nested).not.toBe(input.nested);
      await expect(store.call("echo", () => {})).rejects.toThrow("could not be cloned");
      await expect(store.call("uncopied")).rejects.toThrow("could not be cloned");
      await store.close();
    }
  });

  it("are refused when their module is missing, is none or fails", async () => {
    const path = temporaryFile();
    await expect(SqliteStore.open({ path, procedures: "file:///nowhere.js" })).rejects.toThrow("Cannot find module");
    const none = SqliteStore.open({ path, procedures: module("export default 7") });
    await expect(none).rejects.toThrow("procedures must name a module whose default export");
    const failing = module("export default { migrations: [], prepare() { throw new Error('not ready') } }");
    await expect(SqliteStore.open({ path, procedures: failing })).rejects.toThrow("not ready");
  });

  it.each([
    ["exit", "it exited with 3"],
    ["crash", "by itself"],
  ])("that end the thread (%s) fail everything that waits and comes, and close still ends", async (name, reason) => {
    const { store } = await open({ procedures });
    const waiting = [store.call(name), store.add([{ queue: QUEUE, payload: 1 }])];
    await Promise.allSettled(waiting);
    const later = await store.add([{ queue: QUEUE, payload: 2 }]).catch((error: unknown) => error);
    expect(later).toBeInstanceOf(StoreFailedError);
    expect(later).toMatchObject({ code: "STORE_FAILED", message: expect.stringContaining(reason) });
    await store.close();
  });

  it("that never end are ended by close", async () => {
    const { store, clock } = await open({ procedures, clock: new Untracked() });
    const hung = store.call("hang");
    const rejected = expect(hung).rejects.toThrow(StoreFailedError);
    const closed = store.close();
    await clock.advance(10_000);
    await closed;
    await rejected;
    expect(clock.timers).toBe(0);
  });
});

it("does not keep the process alive, runs where the code came by --eval, and loses nothing then", async () => {
  const path = temporaryFile();
  const code = `import { SqliteStore } from "@sluice/jobs/sqlite";
    const store = await SqliteStore.open({ path: ${JSON.stringify(path)} });
    console.log((await store.add([{ queue: "mail", payload: 1 }]))[0].outcome);`;
  const conditions = process.execArgv.includes("@sluice/source") ? ["--conditions", "@sluice/source"] : [];
  const args = [...conditions, "--input-type=module", "--eval"];
  const { stdout } = await promisify(execFile)(process.execPath, [...args, code]);
  expect(stdout).toBe("created\n");
  const store = await SqliteStore.open({ path });
  expect(await store.list({})).toMatchObject([{ payload: 1 }]);
  await store.close();
});

it("answers each of many callers at once, the jobs in the order of their adding", async () => {
  const { store } = await open();
  const payloads = Array.from({ length: 500 }, (_, index) => index);
  const added = await Promise.all(payloads.map((payload) => store.add([{ queue: QUEUE, payload }])));
  expect(added.map(([each]) => Number(each?.id))).toEqual(payloads.map((payload) => payload + 1));
  const claimed = await claim(store, 500);
  expect(claimed.map(({ payload }) => payload)).toEqual(payloads);
});

/** What a case leaves is removed, unless it has closed the store: then the next one needs another. */
async function openShared(options: StoreOptions, forget: () => void): Promise<OpenedStore> {
  const folder = mkdtempSync(join(tmpdir(), "sqlite-"));
  afterAll(() => rmSync(folder, { recursive: true }));
  const path = join(folder, "jobs.db");
  const clock = new VirtualClock({ wallStartAt: Date.UTC(2030, 0, 1) });
  const store = await SqliteStore.open({ path, durability: "normal", clock, ...options });
  const dispose = async (): Promise<void> => {
    const isOpen = await store.now().then(
      () => true,
      () => false,
    );
    if (!isOpen) return forget();
    const db = new DatabaseSync(path);
    db.exec("DELETE FROM sluice_jobs; DELETE FROM sluice_job_errors");
    db.close();
  };
  return { store, clock, dispose };
}

function module(code: string): string {
  return `data:text/javascript,${encodeURIComponent(code)}`;
}

/** Time goes on although a thread is busy. */
class Untracked extends VirtualClock {
  override track<T>(work: Promise<T>): Promise<T> {
    return work;
  }
}

function claimOf(job: ClaimedJob | undefined): Claim {
  return { id: job?.id ?? "", token: job?.token ?? 0 };
}

function claim(store: SqliteStore, max = 10): Promise<ClaimedJob[]> {
  return store.claim({ queue: QUEUE, max, leaseMs: 2_000, worker: "w" });
}

async function open({
  clock = new VirtualClock({ wallStartAt: Date.UTC(2030, 0, 1) }),
  ...options
}: Partial<Omit<SqliteStoreOptions, "clock">> & { clock?: VirtualClock } = {}): Promise<{
  readonly store: SqliteStore;
  readonly clock: VirtualClock;
  readonly path: string;
}> {
  const path = temporaryFile();
  const store = await SqliteStore.open({ path, durability: "normal", clock, ...options });
  onTestFinished(() => store.close());
  return { store, clock, path };
}

function temporaryFile(): string {
  const folder = mkdtempSync(join(tmpdir(), "sqlite-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return join(folder, "jobs.db");
}
