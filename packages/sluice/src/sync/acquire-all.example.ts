// A transfer needs both accounts, and a backup all three. Whoever locks them one by one, in an order of its own, may end
// up waiting for one that waits for it.
import { acquireAll, Mutex, tryAcquireAll } from "sluice";

const [ann, ben, cid] = [new Mutex(), new Mutex(), new Mutex()];

async function transfer(from: string, to: string, locks: Mutex[]): Promise<void> {
  using _ = await acquireAll(locks, { timeoutMs: 1_000 });
  await Promise.resolve();
  console.log(`${from} to ${to}`);
}

await Promise.all([
  transfer("Ann", "Ben", [ann, ben]),
  transfer("Ben", "Ann", [ben, ann]),
  transfer("Cid", "Ann", [cid, ann]),
]);

const backup = tryAcquireAll([ann, ben, cid]);
console.log(`backup: ${backup?.isHeld}, another: ${tryAcquireAll([ann])?.isHeld}`);
backup?.release();
console.log(`locked: ${ann.locked}`);

// Prints:
// Ann to Ben
// Ben to Ann
// Cid to Ann
// backup: true, another: undefined
// locked: false
