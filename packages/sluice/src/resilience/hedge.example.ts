// A replica that is slow now and then. The second call begins when the first has taken longer than 50 ms, or than 95 of
// 100 calls do once that is known; whichever answers first is the answer, and the other is told to stop.
import { hedge, LatencyPercentile, sleep } from "sluice";

const quick = hedge({ hedgeAfterMs: new LatencyPercentile(95, { initialMs: 50 }) });

async function read(key: string, firstTakesMs: number): Promise<void> {
  const answer = await quick.run(async ({ attempt, signal }) => {
    await sleep(attempt === 1 ? firstTakesMs : 1, { signal });
    return `attempt ${attempt}`;
  });
  console.log(`${key}: ${answer}`);
}

await read("ada", 1);
await read("bob", 60_000);
const { attempts, extraWon } = quick.stats();
console.log(`${attempts} attempts, ${extraWon} run won by an extra one`);

// Prints:
// ada: attempt 1
// bob: attempt 2
// 3 attempts, 1 run won by an extra one
