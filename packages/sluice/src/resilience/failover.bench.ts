// The first target answers. Against the floor: a loop that ends with the first success.
import { compare } from "../../../../bench/harness.ts";
import { failover } from "./failover.ts";

const targets = [1, 2];
const ask = ({ target }: { target: number }): Promise<number> => Promise.resolve(target);

await compare("failover", 100_000, {
  async sluice(ops) {
    const policy = failover(targets);
    for (let i = 0; i < ops; i += 1) await policy.run(ask);
  },
  async floor(ops) {
    for (let i = 0; i < ops; i += 1) await inTurn();
  },
});

async function inTurn(): Promise<number> {
  const errors: unknown[] = [];
  for (const target of targets) {
    try {
      return await ask({ target });
    } catch (error) {
      errors.push(error);
    }
  }
  throw new AggregateError(errors);
}
