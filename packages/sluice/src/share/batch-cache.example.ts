// Names of users, looked up together and kept for a minute by the process. No more than two are kept: who was asked for
// lately stays.
import { batch, BatchCache } from "sluice";
import { VirtualClock } from "sluice/testing";

const clock = new VirtualClock(); // in real life, leave it out
const cache = new BatchCache<string>({ maxEntries: 2, ttlMs: 60_000, clock });

const names = batch<number, string>(
  async (ids) => {
    console.log(`SELECT … WHERE id IN (${ids.join(", ")})`);
    return ids.map((id) => (id > 0 ? `user ${id}` : new Error(`no user ${id}`)));
  },
  { cache },
);

console.log(await Promise.all([1, 2, 1].map((id) => names.load(id))));
console.log(await names.load(1), "again");

await names.load(3); // 2 goes, since nobody asked for it again
await names.load(1);
console.log(`${cache.size} kept, ${names.stats().hits} hits`);

await clock.advance(60_000);
await names.load(1); // too old

await names.load(0).catch((error: Error) => console.log(error.message));
await names.load(0).catch(() => {}); // a failure isn't kept

cache.delete(1); // who has a new name is looked up anew
console.log(await names.load(1));

// Prints:
// SELECT … WHERE id IN (1, 2)
// [ 'user 1', 'user 2', 'user 1' ]
// user 1 again
// SELECT … WHERE id IN (3)
// 2 kept, 3 hits
// SELECT … WHERE id IN (1)
// SELECT … WHERE id IN (0)
// no user 0
// SELECT … WHERE id IN (0)
// SELECT … WHERE id IN (1)
// user 1
