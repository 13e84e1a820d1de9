// Twenty thousand items for a service that takes 20 at a time, fails now and then, and refuses one of them for good.
import { Agent } from "node:http";
import { backfill, type BackfillReport, HttpError, sendTo } from "./backfill.ts";
import { Provider } from "./provider.ts";

const TOTAL = 20_000;
const CONCURRENCY = 16;
const BAD = 15_000;

const items = Array.from({ length: TOTAL }, (_, index) => index);
let isMended = false;
const provider = await Provider.start({
  maxConcurrent: 20,
  flaky: (item) => item % 100 === 99 && item < 10_000,
  refused: (item) => item === BAD && !isMended,
});
const agent = new Agent({ keepAlive: true, maxSockets: CONCURRENCY });
const stop = new AbortController();
for (const name of ["SIGINT", "SIGTERM"] as const)
  process.once(name, () => stop.abort(new Error(`stopped by ${name}`)));

try {
  const send = sendTo(provider.url, agent);
  const options = { concurrency: CONCURRENCY, signal: stop.signal };
  const first = await backfill(items, send, options);
  tell("first run", first);
  isMended = true;
  const second = await backfill(items, send, { ...options, from: first.next });
  tell("second run", second);
  const { limited, unavailable, peak } = provider.counts;
  console.log(`turned away for want of room: ${limited}; tried again: ${unavailable}`);
  console.log(`at most ${CONCURRENCY} at a time: ${peak <= CONCURRENCY ? "yes" : `no, ${peak}`}`);
} finally {
  agent.destroy();
  await provider.stop();
}

function tell(title: string, { next, error }: BackfillReport): void {
  const why = error instanceof HttpError ? `stopped: ${error.message}` : error === undefined ? "complete" : "stopped";
  // Those before the bad item that were under way when it failed are to be sent again.
  const behind = BAD - next;
  const where =
    behind >= 0 && behind < CONCURRENCY ? `the bad item or ${CONCURRENCY - 1} before it at most` : `item ${next}`;
  console.log(`${title}: ${why}; the next one begins at ${where}`);
}

// Prints:
// first run: stopped: the service answered 422; the next one begins at the bad item or 15 before it at most
// second run: complete; the next one begins at item 20000
// turned away for want of room: 0; tried again: 100
// at most 16 at a time: yes
