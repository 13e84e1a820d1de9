// Two workers send what is in the outbox. At a deploy they stop between two mails, and the new process goes on with the
// rest; one that has to be gone at once gives up what it is sending, too.
import { setImmediate } from "node:timers/promises";
import { type Consumer, Queue } from "sluice";

const outbox = new Queue<string>(100);
for (const to of ["ann", "bob", "cem", "dan", "eve"]) await outbox.put(to);

const deploy = new AbortController();
const send: Consumer<string> = async (to) => {
  console.log(`sending to ${to}`);
  await setImmediate();
  if (to === "ann") deploy.abort();
  console.log(`sent to ${to}`);
};

await outbox.consume(send, { workers: 2, stop: deploy.signal });
console.log(`stopped with ${outbox.size} left, ${outbox.closed ? "closed" : "open"}`);

const kill = new AbortController();
const hang: Consumer<string> = (to, { signal }) => {
  console.log(`sending to ${to}`);
  return new Promise((_, reject) => {
    signal?.addEventListener("abort", () => reject(signal.reason));
    kill.abort(new Error("killed"));
  });
};
const killed = outbox.consume(hang, { signal: kill.signal });
await killed.catch((error: Error) => console.log(`${error.message} with ${outbox.size} left`));

outbox.close(); // or it would wait for more
await outbox.consume(send);
console.log(`${outbox.size} left`);

// Prints:
// sending to ann
// sending to bob
// sent to ann
// sent to bob
// stopped with 3 left, open
// sending to cem
// killed with 2 left
// sending to dan
// sent to dan
// sending to eve
// sent to eve
// 0 left
