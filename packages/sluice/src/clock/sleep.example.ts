// A reminder that can be called off.
import { sleep } from "sluice";

const evening = new AbortController();

async function remind(what: string, ms: number): Promise<void> {
  try {
    await sleep(ms, { signal: evening.signal });
    console.log(`remember ${what}`);
  } catch (reason) {
    console.log(`${what}: ${String(reason)}`);
  }
}

const reminders = [remind("the soup", 1), remind("the taxes", 3_600_000)];
await reminders[0];
evening.abort("gone to bed");
await Promise.all(reminders);

// Prints:
// remember the soup
// the taxes: gone to bed
