// victim.ts FILE add|settle|hold: a process to be killed. Each line says what the store has acknowledged: the id of a job
// that was added, or completed; `hold` says the ids of the jobs that it has claimed for 300 ms, and does nothing more.
import { writeSync } from "node:fs";
import { SqliteStore } from "@sluice/jobs/sqlite";

const QUEUE = "victim";
const CALLERS = 10;
const [path = "", role] = process.argv.slice(2);
const store = await SqliteStore.open({ path });

if (role === "add") await Promise.all(Array.from({ length: CALLERS }, add));
else if (role === "settle") await settle();
else await hold();

async function add(): Promise<never> {
  for (;;) tell((await store.add([{ queue: QUEUE, payload: "x".repeat(200) }])).map(({ id }) => id));
}

async function settle(): Promise<void> {
  for (;;) {
    const claimed = await store.claim({ queue: QUEUE, max: 7, leaseMs: 600_000, worker: "victim" });
    if (claimed.length === 0) return;
    await store.settle(claimed.map(({ id, token }) => ({ id, token, kind: "complete", result: id })));
    tell(claimed.map(({ id }) => id));
  }
}

async function hold(): Promise<void> {
  const claimed = await store.claim({ queue: QUEUE, max: 10, leaseMs: 300, worker: "victim" });
  tell(claimed.map(({ id }) => id));
  await new Promise(() => setInterval(() => {}, 1_000));
}

/** At once: what is in a buffer dies with the process. */
function tell(ids: readonly string[]): void {
  writeSync(1, ids.map((id) => `${id}\n`).join(""));
}
