// A page needs a user and her orders. If one of them fails the other is not wanted any more.
import { firstSuccess, sleep, TaskGroup } from "sluice";

async function page(takesMs: number, ordersFail: boolean): Promise<string> {
  await using group = new TaskGroup({ timeoutMs: 5_000 });
  const user = group.run(async ({ signal }) => {
    await sleep(takesMs, { signal }).catch((reason: Error) => {
      console.log(`the user's query is called off: ${reason.message}`);
      throw reason;
    });
    return "Ada";
  });
  const orders = group.run(() => (ordersFail ? Promise.reject(new Error("no orders today")) : [17, 4]));
  await group.join(); // all have ended here, whatever became of them
  return `${await user} has ${(await orders).length} orders`;
}

console.log(await page(1, false));
await page(60_000, true).catch((error: Error) => console.log(`no page: ${error.message}`));

// Three mirrors have the same file; the first that answers will do.
const mirrors = new TaskGroup({ joiner: firstSuccess<string>() });
for (const [name, takesMs] of [
  ["near", 1],
  ["far", 60_000],
] as const) {
  void mirrors.run(({ signal }) => sleep(takesMs, { signal }).then(() => name));
}
void mirrors.run(() => Promise.reject(new Error("down")));
console.log(await mirrors.join(), mirrors.stats().cancelled, "cancelled");

// Prints:
// Ada has 2 orders
// the user's query is called off: no orders today
// no page: no orders today
// near 1 cancelled
