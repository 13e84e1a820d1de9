// Two withdrawals read the balance, ask the bank, and write it. Without the lock both would read 100.
import { Mutex } from "sluice";

const account = { balance: 100 };
const lock = new Mutex({ reentry: "throw" });

async function withdraw(who: string, amount: number): Promise<void> {
  await lock.run(async () => {
    const { balance } = account;
    if (balance < amount) return console.log(`${who}: only ${balance} left`);
    await Promise.resolve(); // the bank says yes
    account.balance = balance - amount;
    console.log(`${who} took ${amount}, ${account.balance} left`);
  });
}

await Promise.all([withdraw("Ann", 80), withdraw("Ben", 80)]);

// A function that asks again for the lock it runs under would wait for itself.
await lock.run(() => withdraw("Cid", 10)).catch((error: Error) => console.log(error.message));
console.log(`locked: ${lock.locked}`);

// Prints:
// Ann took 80, 20 left
// Ben: only 20 left
// whoever waits for this mutex holds it
// locked: false
