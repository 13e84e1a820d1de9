// Two people draw money from one account. Each order of their steps is tried, and one is found that goes wrong.
import { Mutex, type Policy } from "sluice";
import { explore, type ExploreActor, ExploreError, type ExploreStage } from "sluice/testing";

async function drawing({ task, invariant }: ExploreStage, guard?: Policy): Promise<void> {
  let balance = 100;
  invariant("the balance is never negative", () => balance >= 0);
  const draw = async ({ step }: ExploreActor): Promise<void> => {
    const isEnough = await step("asks if 60 are there", () => balance >= 60);
    if (isEnough) await step("draws 60, which leaves", () => (balance -= 60));
  };
  await Promise.all([
    task("Ann", (actor) => guard?.run(() => draw(actor)) ?? draw(actor)),
    task("Bob", (actor) => guard?.run(() => draw(actor)) ?? draw(actor)),
  ]);
}

const found = await explore((stage) => drawing(stage)).catch((error: unknown) => error);
if (found instanceof ExploreError) {
  console.log(found.message);
  // The same schedule again: to debug it, or to see that it is mended.
  const report = await explore((stage) => drawing(stage, new Mutex()), { schedule: found.schedule.slice(0, 3) });
  console.log(report.schedules, "schedule, all well");
}
const { schedules, exhaustive } = await explore((stage) => drawing(stage, new Mutex()));
console.log(schedules, "schedules, all well;", exhaustive ? "there are no others" : "there are more");

// Prints:
// it does not hold that the balance is never negative, when
//   1. Ann starts
//   2. Ann asks if 60 are there (true)
//   3. Bob starts
//   4. Bob asks if 60 are there (true)
//   5. Bob draws 60, which leaves (40)
//   6. Ann draws 60, which leaves (-20)
// 1 schedule, all well
// 6 schedules, all well; there are no others
