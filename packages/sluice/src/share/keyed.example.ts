// Two bookings on one account run one after the other, one on another account beside them; idle accounts cost nothing.
import { Keyed, Semaphore } from "sluice";

const accounts = new Keyed<string>(() => new Semaphore(1));
const balances = new Map([
  ["ann", 100],
  ["bob", 50],
]);

async function withdraw(account: string, amount: number): Promise<void> {
  await accounts.run(account, async () => {
    const balance = balances.get(account) ?? 0;
    await Promise.resolve(); // a database would be asked here, and another booking could slip in between
    if (balance >= amount) balances.set(account, balance - amount);
    console.log(`${account}: ${balance} - ${amount} = ${balances.get(account)}`);
  });
}

await Promise.all([withdraw("ann", 70), withdraw("ann", 70), withdraw("bob", 20)]);
console.log(`${accounts.size} accounts in use`);

// Prints:
// ann: 100 - 70 = 30
// bob: 50 - 20 = 30
// ann: 30 - 70 = 30
// 0 accounts in use
