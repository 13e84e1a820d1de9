// A request has 200 ms. What it calls, however deep, asks for what is left and tells the next process of it.
import { currentDeadline, DEADLINE_HEADER, deadlineHeaders, retry, sleep, timeout, withDeadline } from "sluice";

const attempt = timeout(50, { within: currentDeadline });
const again = retry({ retries: Infinity, random: () => 0 });
let attempts = 0;

async function loadUser(): Promise<void> {
  const deadline = currentDeadline();
  const headers = deadline === undefined ? {} : deadlineHeaders(deadline, { reserveMs: 10 });
  if (attempts === 0) console.log(`asks with ${DEADLINE_HEADER} between 150 and 190:`, isBetween(headers, 150, 190));
  attempts += 1;
  await sleep(60_000, { signal: deadline?.signal }); // hangs
}

function isBetween(headers: Record<string, string>, min: number, max: number): boolean {
  const leftMs = Number(headers[DEADLINE_HEADER]);
  return leftMs >= min && leftMs <= max;
}

const outcome = await withDeadline(200, () =>
  again.run(() => attempt.run(loadUser), { deadline: currentDeadline() }),
).catch((error: Error) => error.name);
console.log(outcome, attempts >= 2 && attempts <= 4);

// Prints:
// asks with deadline-ms between 150 and 190: true
// TimeoutError true
