// An account that many draw from. Its balance and its history change together, without a lock, since it is one actor that
// handles one message at a time. A withdrawal that fails leaves the account as it is.
import { Actor } from "sluice";

interface Movement {
  readonly cents: number;
  readonly by: string;
}

const account = new Actor<Movement, number>(
  100, // more than these wait for room
  () => {
    let balance = 0;
    const history: string[] = [];
    return async ({ cents, by }) => {
      if (balance + cents < 0) throw new RangeError(`${by} asks for ${-cents}, there are ${balance}`);
      await Promise.resolve(); // as a real one would, to look something up: nobody else gets in between
      history.push(by);
      balance += cents;
      console.log(`${by}: ${cents}, after ${history.length} movements ${balance}`);
      return balance;
    };
  },
  { name: "account", onFailure: "resume" },
);

await account.tell({ cents: 1_000, by: "employer" });
const drawn = await Promise.allSettled(
  ["Ann", "Bob", "Cem"].map((by) => account.ask({ cents: -400, by }, { timeoutMs: 500 })),
);
for (const outcome of drawn)
  console.log(outcome.status === "fulfilled" ? `left: ${outcome.value}` : `refused: ${String(outcome.reason)}`);

account.close();
await account.drain();
const { completed, failed, restarts } = account.stats();
console.log(`${completed} handled, ${failed} failed, ${restarts} restarts`);

// Prints:
// employer: 1000, after 1 movements 1000
// Ann: -400, after 2 movements 600
// Bob: -400, after 3 movements 200
// left: 600
// left: 200
// refused: RangeError: Cem asks for 400, there are 200
// 4 handled, 1 failed, 0 restarts
