// member.ts FILE JOBS SEED: one of the processes. Adds JOBS jobs with 20 callers while 4 others claim and settle whatever
// there is, each job worth up to 2 ms of work.
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { SqliteStore } from "@sluice/jobs/sqlite";
import { seededRandom } from "sluice/testing";
import type { Account, Word } from "./group.ts";

const QUEUE = "stress";
const ADDERS = 20;
const CLAIMERS = 4;
const MAX_CLAIM = 20;
const WORK_MS = 2;
const LEASE_MS = 600_000;
const LOOK_EVERY_MS = 5;

const [path = "", jobs = "", seed = ""] = process.argv.slice(2);
const random = seededRandom(Number(seed));
const account = { added: [] as string[], done: [] as string[], errors: [] as string[], delaysMs: [] as number[] };
let left = Number(jobs);
let draining = false;
const over = new AbortController();

const store = await SqliteStore.open({ path, retention: { succeededMs: 0 } });
const go = once(process, "message");
say("ready");
await go;
const drain = once(process, "message").then(() => (draining = true));
const looking = look();
const claiming = Promise.all(Array.from({ length: CLAIMERS }, claim));
await Promise.all(Array.from({ length: ADDERS }, add));
say("added");
await drain;
await claiming;
over.abort();
await looking;
await store.close();
process.send?.(account satisfies Account, () => process.disconnect());

async function add(): Promise<void> {
  while (left > 0) {
    left -= 1;
    const added = await attempt(store.add([{ queue: QUEUE, payload: left, priority: Math.floor(random() * 3) }]));
    account.added.push(...(added ?? []).map(({ id }) => id));
  }
}

async function claim(): Promise<void> {
  for (;;) {
    const isLast = draining; // nobody adds any more, so that what is empty now stays empty
    const max = 1 + Math.floor(random() * MAX_CLAIM);
    const claimed = (await attempt(store.claim({ queue: QUEUE, max, leaseMs: LEASE_MS, worker: seed }))) ?? [];
    if (claimed.length === 0 && isLast) return;
    await sleep(random() * WORK_MS);
    const settled = await attempt(store.settle(claimed.map(({ id, token }) => ({ id, token, kind: "complete" }))));
    account.done.push(...claimed.filter((_, index) => settled?.[index] === true).map(({ id }) => id));
  }
}

async function look(): Promise<void> {
  while (!over.signal.aborted) {
    const dueAt = performance.now() + LOOK_EVERY_MS;
    await sleep(LOOK_EVERY_MS);
    account.delaysMs.push(performance.now() - dueAt);
  }
}

async function attempt<T>(operation: Promise<T>): Promise<T | undefined> {
  try {
    return await operation;
  } catch (error) {
    account.errors.push(String(error));
    return undefined;
  }
}

function say(word: Word): void {
  process.send?.(word);
}
