// Three regions of a simulation step together: none begins the next step before all have ended the last.
import { Barrier, type BarrierParty } from "sluice";

const heat = [90, 30, 0];
const next = [...heat];

const barrier = new Barrier(0, {
  // The last to arrive does this, while the others wait.
  action: (step) => {
    heat.splice(0, heat.length, ...next);
    console.log(`step ${step}: ${heat.join(" ")}`);
  },
});

async function simulate(party: BarrierParty, region: number): Promise<void> {
  using _ = party; // it leaves with the function, and the others don't wait for it
  for (let step = 0; step < 2; step += 1) {
    const around = [heat[region - 1], heat[region], heat[region + 1]].filter((value) => value !== undefined);
    next[region] = Math.round(around.reduce((sum, value) => sum + value, 0) / around.length);
    if (barrier.arrived === 1) console.log(`missing: ${barrier.stats().missing}`);
    await party.wait({ timeoutMs: 1_000 }); // who waits in vain breaks the round for all
  }
}

// All register before the first begins, or it would be alone and complete its rounds.
const parties = ["north", "middle", "south"].map((name) => barrier.register(name));
await Promise.all(parties.map(simulate));
console.log(`${barrier.parties} parties are left`);

// Prints:
// missing: middle, south
// step 0: 60 40 15
// missing: middle, south
// step 1: 50 38 28
// 0 parties are left
