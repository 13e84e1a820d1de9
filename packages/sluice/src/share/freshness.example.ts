// A weather report is good for a minute. It is renewed in the last ten seconds while somebody reads it; the old one does
// while a new one is fetched, and for an hour if there is none to be had.
import { Cache, freshness } from "sluice";
import { VirtualClock } from "sluice/testing";

const clock = new VirtualClock(); // in real life, leave it out
let isUp = true;
let version = 0;

const reports = new Cache(
  async (city: string) => {
    if (!isUp) throw new Error("the station is down");
    version += 1;
    return `${city}, report ${version}`;
  },
  {
    maxEntries: 1_000,
    ttlMs: 60_000,
    freshness: freshness({
      refreshAhead: 1 / 6,
      staleMs: 30_000,
      staleOnErrorMs: 3_600_000,
      failureTtlMs: 5_000,
      onError: (error, city) => console.log(`${String(city)} stays old: ${String(error)}`),
    }),
    clock,
  },
);

async function read(when: string): Promise<void> {
  const report = await reports.load("Bern").catch(String);
  await clock.advance(0); // what goes on in the background ends
  console.log(`${when}: ${report} (${reports.stats().loads} loads)`);
}

await read("at first");
await clock.advance(49_000);
await read("after 49 s");
await clock.advance(3_000);
await read("after 52 s");
await clock.advance(80_000);
await read("80 s later");
await read("and then");

isUp = false;
await clock.advance(600_000);
await read("10 min later");
await clock.advance(1_000);
await read("and then");
await clock.advance(7_200_000);
await read("2 h later");

// Prints:
// at first: Bern, report 1 (1 loads)
// after 49 s: Bern, report 1 (1 loads)
// after 52 s: Bern, report 1 (2 loads)
// 80 s later: Bern, report 2 (3 loads)
// and then: Bern, report 3 (3 loads)
// Bern stays old: Error: the station is down
// 10 min later: Bern, report 3 (4 loads)
// and then: Bern, report 3 (4 loads)
// 2 h later: Error: the station is down (5 loads)
