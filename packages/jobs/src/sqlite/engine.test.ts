import { copyFileSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, it, onTestFinished } from "vitest";
import type { PreparedJob } from "../validate.ts";
import { Engine } from "./engine.ts";
import { openDatabase } from "./open.ts";
import type { Answer, Operation } from "./operation.ts";
import type { JobsInTransaction, ProcedureModule } from "./procedures.ts";

const OPTIONS = {
  durability: "normal",
  busyTimeoutMs: 0,
  now: () => 0,
  retention: { succeededMs: 1_000, deadMs: Infinity },
  maxPayloadBytes: 10_000,
} as const;

/** What can't be shown, or can't be copied as it stands. */
const ODD: readonly unknown[] = [
  Object.create(null),
  Object.assign(new Error("a"), { name: Symbol("s") }),
  Object.assign(new Error("b"), { stack: [() => 1] }),
  Object.assign(new Error("c"), { message: () => 1 }),
  Object.defineProperty(new Error("d"), "e", {
    enumerable: true,
    get() {
      throw new Error("f");
    },
  }),
];
const late: unknown[] = [];

const procedures: ProcedureModule = {
  migrations: [
    "CREATE TABLE mine (a TEXT NOT NULL)",
    `CREATE TABLE parent (id INTEGER PRIMARY KEY);
    CREATE TABLE child (parent INTEGER REFERENCES parent (id) DEFERRABLE INITIALLY DEFERRED)`,
  ],
  prepare(db) {
    const keep = db.prepare("INSERT INTO mine (a) VALUES (?)");
    return {
      keep: (text: string) => void keep.run(text),
      keepAndThrow(text: string) {
        keep.run(text);
        throw Object.assign(new RangeError("no more"), { code: "MORE", left: 3 });
      },
      async later() {},
      thenable: () =>
        new (class {
          // oxlint-disable-next-line unicorn/no-thenable -- as the query builders of some libraries have
          then() {}
        })(),
      symbol: () => Symbol("s"),
      odd: (index: number) => {
        throw ODD[index];
      },
      async addLater(_: unknown, jobs: JobsInTransaction) {
        await Promise.resolve();
        try {
          jobs.add([{ queue: "a", payload: 1 }]);
        } catch (error) {
          late.push(error);
        }
        throw new Error("nobody hears of this");
      },
      rollBack: () => db.exec("ROLLBACK"),
      orphan: () => db.exec("INSERT INTO child VALUES (1)"),
      limitPages: (pages: number) => db.exec(`PRAGMA max_page_count = ${pages}`),
    };
  },
};

it("undoes an operation that throws, and keeps the rest of its batch", () => {
  const { run, kept } = open();
  const answers = run(call("keep", "a"), call("keepAndThrow", "b"), add(1), call("keep", "c"));
  expect(kept()).toEqual(["a", "c"]);
  expect(answers.map((answer) => "value" in answer)).toEqual([true, false, true, true]);
  expect(answers[1]).toMatchObject({
    failure: { name: "RangeError", message: "no more", fields: { code: "MORE", left: 3 } },
  });
  expect(count(run)).toBe(1);
});

it("shows the reads of a batch what its writes did, whatever their order", () => {
  const { run } = open();
  const [read] = run({ kind: "get", id: "1" }, add(7));
  expect(read).toMatchObject({ value: { id: "1", payload: "7", state: "ready" } });
});

it("tells in which queues jobs may have become ready", () => {
  const { engine } = open();
  const jobs = ["a", "b", "a"].map((queue) => job(1, queue));
  expect([...engine.run({ now: 0, operations: [{ kind: "add", jobs }] }).ready]).toEqual(["a", "b"]);
  expect(engine.run({ now: 0, operations: [{ kind: "stats", queue: "a" }] }).ready.size).toBe(0);
});

it("answers reads while another process holds the write lock, and fails writes when it has waited long enough", () => {
  const { path, run } = open();
  run(add(1));
  const other = new DatabaseSync(path);
  other.exec("BEGIN IMMEDIATE");
  const [added, read] = run(add(2), { kind: "get", id: "1" });
  expect(added).toMatchObject({ failure: { name: "StoreBusyError", fields: { code: "STORE_BUSY" } } });
  expect(read).toMatchObject({ value: { id: "1" } });
  other.exec("COMMIT");
  other.close();
  expect(run(add(3))).toEqual([{ value: [{ id: "2", outcome: "created" }] }]);
});

it("fails what a full disk leaves no room for, changes nothing by it, and goes on once there is room", () => {
  const { run } = open();
  run(add(1), call("limitPages", 1)); // SQLite takes the present size for the least
  const big = Array.from({ length: 50 }, (_, index) => job("x".repeat(4_000), index % 2 === 0 ? "a" : "b"));
  const answers = run({ kind: "add", jobs: big }, { kind: "stats", queue: "a" }, { kind: "stats", queue: "b" });
  expect(answers[0]).toMatchObject({ failure: { message: "database or disk is full", fields: { errcode: 13 } } });
  expect(answers.slice(1)).toMatchObject([{ value: { ready: 1 } }, { value: { ready: 0 } }]);
  run(call("limitPages", 100_000));
  expect(run({ kind: "add", jobs: big })).toMatchObject([{ value: { length: 50 } }]);
  expect(count(run)).toBe(51);
});

it("fails the whole batch if a procedure ends the transaction, and goes on with the next", () => {
  const { run } = open();
  const answers = run(add(1), call("rollBack"), add(2));
  expect(answers.map((answer) => "failure" in answer)).toEqual([true, true, true]);
  expect(count(run)).toBe(0);
  expect(run(add(3))).toMatchObject([{ value: [{ outcome: "created" }] }]);
});

it("fails the whole batch if the commit fails, changes nothing by it, and goes on with the next", () => {
  const { run } = open();
  const answers = run(add(1), call("orphan"), add(2));
  for (const answer of answers) expect(answer).toMatchObject({ failure: { message: "FOREIGN KEY constraint failed" } });
  expect(count(run)).toBe(0);
  expect(run(add(3))).toMatchObject([{ value: [{ id: "1", outcome: "created" }] }]);
});

it.each<[string, (path: string) => void]>([
  ["was removed", (path) => rmSync(path)],
  ["was replaced", (path) => (copyFileSync(path, `${path}-copy`), renameSync(`${path}-copy`, path))],
  ["has lost its log", (path) => rmSync(`${path}-wal`)],
])("acknowledges nothing, and shows nothing, once its file %s", (_, harm) => {
  const { run, path } = open();
  expect(run(add(1))).toMatchObject([{ value: [{ outcome: "created" }] }]);
  harm(path);
  const gone = { failure: { name: "StoreOpenError", fields: { path: expect.stringContaining("jobs.db") } } };
  expect(run(add(2), { kind: "get", id: "1" })).toMatchObject([gone, gone]);
});

it("refuses a procedure that returns a promise, and one that it doesn't know", () => {
  const { run } = open();
  expect(run(call("later"), call("other"), call("toString"))).toMatchObject([
    { failure: { name: "TypeError", message: expect.stringContaining("later") } },
    { failure: { name: "RangeError", message: expect.stringContaining("keep, keepAndThrow") } },
    { failure: { name: "RangeError" } },
  ]);
});

it("refuses what can't be copied to the caller, or might end later, alone", () => {
  const { run } = open();
  const answers = run(call("keep", "a"), call("symbol"), call("thenable"), call("keep", "b"));
  expect(answers).toMatchObject([
    { value: undefined },
    { failure: { name: "DataCloneError" } },
    { failure: { name: "TypeError", message: "the procedure thenable must return a value, got a promise" } },
    { value: undefined },
  ]);
});

it("tells of whatever a procedure throws in a way that can be copied, and keeps the rest of its batch", () => {
  const { run, kept } = open();
  const answers = run(...ODD.map((_, index) => call("odd", index)), call("keep", "a"));
  for (const answer of answers.slice(0, -1)) expect(structuredClone(answer)).toMatchObject({ failure: {} });
  expect(answers.slice(2, 4)).toMatchObject([{ failure: { message: "b" } }, { failure: { message: "() => 1" } }]);
  expect(kept()).toEqual(["a"]);
});

it("lets a procedure that was refused for its promise add nothing afterwards, and end nobody by its rejection", async () => {
  const { run } = open();
  expect(run(call("addLater"))).toMatchObject([{ failure: { name: "TypeError" } }]);
  await new Promise((resolve) => setImmediate(resolve));
  expect(late).toMatchObject([{ message: "jobs must not be used after the procedure addLater has returned" }]);
  expect(count(run)).toBe(0);
});

function open(): {
  readonly path: string;
  readonly engine: Engine;
  readonly run: (...operations: Operation[]) => readonly Answer[];
  readonly kept: () => unknown[];
} {
  const folder = mkdtempSync(join(tmpdir(), "sqlite-"));
  const path = join(folder, "jobs.db");
  const db = openDatabase({ ...OPTIONS, path }, procedures.migrations);
  const engine = new Engine(db, OPTIONS, procedures);
  onTestFinished(() => {
    engine.close();
    rmSync(folder, { recursive: true });
  });
  return {
    path,
    engine,
    run: (...operations) => engine.run({ now: 0, operations }).answers,
    kept: () =>
      db
        .prepare("SELECT a FROM mine")
        .all()
        .map(({ a }) => a),
  };
}

function count(run: (...operations: Operation[]) => readonly Answer[]): number {
  const [answer] = run({ kind: "list", filter: {}, after: 0, limit: 1_000 });
  return answer !== undefined && "value" in answer ? (answer.value as unknown[]).length : Number.NaN;
}

function add(payload: unknown): Operation {
  return { kind: "add", jobs: [job(payload)] };
}

function job(payload: unknown, queue = "a"): PreparedJob {
  const rest = { runAt: undefined, delayMs: 0, priority: 0, maxAttempts: 4, uniqueKey: undefined, replace: false };
  return { queue, payload: JSON.stringify(payload), ...rest };
}

function call(name: string, input?: unknown): Operation {
  return { kind: "call", name, input };
}
