// Mails are sent two at a time. One address is unknown for good; one server is busy at first.
// #region example
import { Jobs, snooze, UnrecoverableError, Worker } from "@sluice/jobs";
import { MemoryStore } from "@sluice/jobs/memory";

interface Queues {
  readonly mail: { readonly to: string };
}

const store = new MemoryStore();
const jobs = new Jobs<Queues>(store);
await jobs.addMany("mail", [{ to: "ann" }, { to: "nobody" }, { to: "bob" }]);

let busy = true;
let left = 3;
const done = Promise.withResolvers<undefined>();
const worker = new Worker<Queues["mail"]>(
  store,
  "mail",
  async ({ payload: { to } }, { signal, idempotencyKey }) => {
    if (to === "nobody") throw new UnrecoverableError("no such address");
    if (to === "bob" && busy) {
      busy = false;
      return snooze(20, "the server is busy");
    }
    signal.throwIfAborted();
    console.log(`mail ${idempotencyKey} to ${to}`);
    left -= 1;
    if (left === 0) done.resolve(undefined);
    return { sent: true };
  },
  { concurrency: 2 },
);
worker.start();

// What is added while it runs wakes it, and the same key twice is one job.
await jobs.add("mail", { to: "cleo" }, { uniqueKey: "welcome cleo" });
console.log((await jobs.add("mail", { to: "cleo" }, { uniqueKey: "welcome cleo" })).outcome);

await done.promise;
console.log(await worker.stop());
for (const { id, state, result, reason } of await jobs.list()) console.log(id, state, result ?? reason);
// #endregion

// Prints:
// mail 1 to ann
// mail 4 to cleo
// existing
// mail 3 to bob
// { finished: 1, aborted: 0, released: [], lost: [] }
// 1 succeeded { sent: true }
// 2 dead UnrecoverableError: no such address
// 3 succeeded { sent: true }
// 4 succeeded { sent: true }
