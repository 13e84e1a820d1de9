// The limits of a service are read by every request and change while it runs. A request keeps those it began with.
import { Snapshot } from "sluice";

const limits = new Snapshot({ perMinute: 60, blocked: ["mallory"] });
limits.subscribe(({ version, value }) => console.log(`version ${version}: ${value.perMinute} a minute`));

async function request(id: number): Promise<void> {
  console.log(`request ${id} begins with ${limits.current.perMinute}`);
  await Promise.resolve();
  console.log(`request ${id} ends with ${limits.current.perMinute}`);
}

const first = limits.run(() => request(1));
// Both are kept: the one that comes too late begins anew with what the other made.
const faster = limits.update(async (old) => ({ ...old, perMinute: 120 }));
const stricter = limits.update(async (old) => ({ ...old, blocked: [...old.blocked, "eve"] }));
await Promise.all([first, faster, stricter]);
await limits.run(() => request(2));
console.log(limits.get().blocked.join(", "));

// Prints:
// request 1 begins with 60
// request 1 ends with 60
// version 2: 120 a minute
// version 3: 120 a minute
// request 2 begins with 120
// request 2 ends with 120
// mallory, eve
