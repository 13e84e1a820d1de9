import { setImmediate as turn } from "node:timers/promises";
import { expect, it } from "vitest";
import { sleep } from "../clock/sleep.ts";
import { TimeoutError } from "../errors.ts";
import { Semaphore } from "../sync/semaphore.ts";
import { explore, type ExploreOptions, type ExploreReport } from "./explore.ts";
import { ExploreError } from "./explore/explore-error.ts";
import type { ExploreStage, Scenario } from "./explore/scenario.ts";

it("tries each order of the steps of concurrent tasks exactly once", async () => {
  const orders: string[] = [];
  const report = await explore(async ({ task }) => {
    let order = "";
    const name = (letter: string): Promise<void> =>
      task(letter, async ({ step }) => {
        order += letter; // its start
        await step("goes on", () => void (order += letter));
      });
    await Promise.all(["a", "b", "c"].map(name));
    orders.push(order);
  });
  expect(report).toEqual({ schedules: 90, exhaustive: true, cut: 0, seed: 1 }); // 6! / (2! 2! 2!)
  expect([new Set(orders).size, orders[0]]).toEqual([90, "aabbcc"]);
});

it("finds the shortest schedule that fails, with the fewest switches, and tells it in words with what each step gave", async () => {
  const error = await failureOf(twoDeposits);
  expect(error.message).toBe(
    [
      "the scenario failed: the balance is 10, not 20, when",
      "  1. A starts",
      "  2. A reads the balance (0)",
      "  3. B starts",
      "  4. B reads the balance (0)",
      "  5. B writes the balance (10)",
      "  6. A writes the balance (10)",
    ].join("\n"),
  );
  expect(error).toMatchObject({
    code: "EXPLORE",
    kind: "failed",
    seed: 1,
    cause: { message: "the balance is 10, not 20" },
  });
});

it("stops at the step at which it fails, however long the scenario would go on", async () => {
  const error = await failureOf(async ({ task, invariant }) => {
    let count = 0;
    invariant("the count stays below 3", () => count < 3);
    const tasks = ["A", "B"].map((name) =>
      task(name, async ({ step }) => {
        for (let times = 0; times < 3; times += 1) await step(`adds ${times}`, () => (count += 1));
      }),
    );
    await Promise.all(tasks);
  });
  expect(error.message).toMatch(/^it does not hold that the count stays below 3, when\n/);
  expect(error.steps).toEqual(["A starts", "A adds 0 (1)", "A adds 1 (2)", "A adds 2 (3)"]);
});

it("runs again what it found by its schedule, and goes by a beginning as well", async () => {
  const { schedule } = await failureOf(twoDeposits);
  const again = await failureOf(twoDeposits, { schedule });
  expect([again.schedule, again.schedules]).toEqual([schedule, 1]);
  expect((await failureOf(twoDeposits, { schedule: schedule.slice(0, 4) })).steps).toHaveLength(6);
  expect(await explore(twoDeposits, { schedule: ["B starts"] })).toEqual({
    schedules: 1,
    exhaustive: false,
    cut: 0,
    seed: 1,
  });
  const unfit = explore(twoDeposits, { schedule: ["A starts", "C starts"] });
  await expect(unfit).rejects.toThrow(
    'schedule must fit the scenario: step 2 is "C starts", could be "A reads the balance", "B starts"',
  );
});

it("finds in a scenario too large to try all of it what chance finds, the same for the same seed, and shortens it", async () => {
  const options = { maxSchedules: 1, randomSchedules: 200, seed: 7 };
  const [first, second] = [await failureOf(manyDeposits, options), await failureOf(manyDeposits, options)];
  expect([first.message, first.schedules]).toEqual([second.message, second.schedules]);
  expect(first.seed).toBe(7);
  expect(switches(first.schedule)).toBeLessThanOrEqual(4); // one deposit between a read and a write of another
  expect((await failureOf(manyDeposits, { schedule: first.schedule })).message).toBe(first.message);
});

it("says that it has not tried all when it has not", async () => {
  expect(await explore(calm, { maxSchedules: 10, randomSchedules: 5 })).toMatchObject({
    schedules: 15,
    exhaustive: false,
  });
  expect(await explore(calm, { maxSchedules: 90 })).toMatchObject({ schedules: 90, exhaustive: true });
  expect(await explore(calm, { maxSteps: 3, randomSchedules: 0 })).toMatchObject({ exhaustive: false });
});

it("cuts a schedule that does not end", async () => {
  expect(await explore(spin, { maxSteps: 5 })).toEqual({ schedules: 1, exhaustive: false, cut: 1, seed: 1 });
});

it("cuts a loop that chooses again and again", async () => {
  expect(await explore(eager, { maxSteps: 5 })).toEqual({ schedules: 6, exhaustive: false, cut: 1, seed: 1 });
  const careless = (stage: ExploreStage): void => {
    eager(stage);
    throw new Error("after the loop");
  };
  expect((await failureOf(careless, { maxSteps: 5 })).steps).toEqual(["goes on: false"]);
});

it("tries also what nobody waits for before and after all else, so that what comes too late is found", async () => {
  const error = await failureOf(async ({ step, task, invariant }) => {
    let [isOver, isWrittenLate] = [false, false];
    invariant("nothing is written after the end", () => !isWrittenLate);
    void step("writes", () => void (isWrittenLate = isOver));
    await task("A", (actor) => actor.step("ends", () => void (isOver = true)));
  });
  expect(error.schedule).toEqual(["A starts", "A ends", "writes"]);
});

it("finds that nothing can go on, and who waits", async () => {
  const error = await failureOf(async ({ task }) => {
    const [fork, knife] = [new Semaphore(1), new Semaphore(1)];
    const eat = (name: string, first: Semaphore, second: Semaphore): Promise<void> =>
      task(name, ({ step }) => first.run(() => step("has one", () => {}).then(() => second.run(() => {}))));
    await Promise.all([eat("Ann", fork, knife), eat("Bob", knife, fork)]);
  });
  expect(error.kind).toBe("stuck");
  expect(error.message).toBe(
    [
      "nothing can go on: Ann, Bob wait for ever, when",
      "  1. Ann starts",
      "  2. Bob starts",
      "  3. Bob has one",
      "  4. Ann has one",
    ].join("\n"),
  );
  await expect(explore(() => new Promise(() => {}))).rejects.toThrow(
    "nothing can go on: the scenario waits for ever, from the start",
  );
});

it("lets time pass to the next timer before or after any step", async () => {
  const seen = new Set<string>();
  const report = await explore(async ({ task, clock }) => {
    const sem = new Semaphore(1, { clock });
    const held = sem.tryAcquire();
    const waits = task("waiter", () =>
      sem.acquire({ timeoutMs: 50 }).then(
        () => "granted",
        (error) => (error instanceof TimeoutError ? "timed out" : "failed"),
      ),
    );
    await task("holder", ({ step }) => step("releases", () => held?.release()));
    seen.add(`${await waits} at ${clock.now()} ms`);
  });
  expect(report.exhaustive).toBe(true);
  expect([...seen].toSorted()).toEqual(["granted at 0 ms", "timed out at 50 ms"]);
});

it("fires the timers of one instant in the order they were set, but for those that were cancelled, and tells the time", async () => {
  await explore(async ({ step, clock }) => {
    const log: string[] = [];
    const set = (name: string, ms: number): { cancel(): void } =>
      clock.setTimer(ms, { onTimer: () => void log.push(`${name} at ${clock.now()}, ${clock.wallNow()}`) });
    set("late", 20);
    const timers: { cancel(): void }[] = [];
    clock.setTimer(10, { onTimer: () => timers[0]?.cancel() });
    timers.push(set("cancelled", 10));
    set("early", 10);
    await sleep(20, { clock });
    await step("looks");
    expect(log).toEqual(["early at 10, 10", "late at 20, 20"]);
  });
});

it("waits for work that the clock was told of", async () => {
  const report = await explore(async ({ clock, step }) => {
    const answer = await clock.track(turn().then(() => turn(5)));
    await step("has it", () => answer);
    expect(answer).toBe(5);
  });
  expect(report).toMatchObject({ schedules: 1, exhaustive: true });
});

it("tries each choice, at each place", async () => {
  const seen: string[] = [];
  const report = await explore(async ({ choose, task }) => {
    const first = choose("the call", ["works", "fails"]);
    const second = await task("A", (actor) => actor.choose("tries", [1, 2, 3]));
    seen.push(`${first} ${second}`);
  });
  expect(seen).toEqual(["works 1", "works 2", "works 3", "fails 1", "fails 2", "fails 3"]);
  expect(report.schedules).toBe(6);
  const error = await failureOf(({ choose }) => {
    if (choose("the call", ["works", "fails"]) === "fails") throw new Error("it failed");
  });
  expect([error.schedule, error.message]).toEqual([
    ["the call: fails"],
    "the scenario failed: it failed, when\n  1. the call: fails",
  ]);
  const unsayable = await failureOf(({ choose }) => choose("does", [() => {}, expect.unreachable])());
  expect(unsayable.schedule).toEqual(["does: choice 2"]);
  await expect(explore(({ choose }) => choose("nothing", []))).rejects.toThrow("choices must not be empty");
  await expect(explore(({ choose }) => choose("one", 5 as never))).rejects.toThrow(
    "choices must be a list, got number",
  );
});

it("hands a settled promise on as a step of its own", async () => {
  const orders = new Set<string>();
  await explore(async ({ task }) => {
    let order = "";
    const hear = (name: string, answer: () => Promise<string>): Promise<unknown> =>
      task(name, async ({ step }) => {
        const heard = await step("hears", answer()).catch((error: Error) => error.message);
        order += heard; // `order += await …` would be a race of its own
      });
    await Promise.all([hear("A", () => Promise.resolve("a")), hear("B", () => Promise.reject(new Error("b")))]);
    orders.add(order);
  });
  expect([...orders].toSorted()).toEqual(["ab", "ba"]);
});

it("fails by a task that nobody awaits, a step that rejects, a timer that throws, and an invariant that throws", async () => {
  const failure = new Error("no");
  const refuse = (): never => {
    throw failure;
  };
  const scenarios: Readonly<Record<string, Scenario>> = {
    "A failed: no": ({ task }) => void task("A", refuse),
    "late failed: no": ({ task, clock }) => void task("late", () => sleep(1, { clock }).then(refuse)),
    "B failed: no": ({ task }) => task("B", ({ step }) => step("tries", refuse)),
    "C failed: no": ({ task }) => task("C", ({ step }) => step("tries", () => Promise.reject(failure))),
    "a timer failed: no": ({ clock, step }) => (clock.setTimer(1, { onTimer: refuse }), step("waits")),
    "it does not hold that all is well: no": ({ invariant }) => invariant("all is well", refuse),
    "the scenario failed: no": refuse,
  };
  for (const [why, scenario] of Object.entries(scenarios)) {
    const error = await failureOf(scenario);
    expect([error.message.split(/, (when|from the start)/)[0], error.cause, error.kind]).toEqual([
      why,
      failure,
      "failed",
    ]);
  }
});

it("fails by what can't be said, as null, undefined and an object without a prototype", async () => {
  for (const [cause, said] of [
    [undefined, "undefined"],
    [null, "null"],
    [Symbol("s"), "Symbol(s)"],
    [Object.create(null) as unknown, "object"],
  ] as const) {
    const error = await failureOf(({ step }) => step("throws", () => Promise.reject(cause)));
    expect([error.message.split(", when")[0], error.cause]).toEqual([`the scenario failed: ${said}`, cause]);
  }
});

it("refuses an invariant that answers later, since nothing waits for it", async () => {
  for (const check of [async () => false, () => Promise.reject(new Error("no"))]) {
    const error = await failureOf(({ invariant }) => invariant("all is well", check));
    expect(error.message).toMatch(/^it does not hold that all is well: the check must answer at once, got a promise/);
  }
});

it("says what a step gave if it fits in the line, and what it threw", async () => {
  const error = await failureOf(async ({ step }) => {
    await step("gives", () => 5n);
    await step("gives", () => "x".repeat(50));
    await step("gives", () => ({ a: [1] }));
    await step("gives", () => Symbol("s"));
    await step("gives", () => null);
    const circle = { self: {} };
    circle.self = circle;
    expect(await step("gives", () => circle)).toBe(circle);
    await step("throws", () => Promise.reject(new Error("away"))).catch(() => {});
    await step("throws", Promise.reject(new Error("elsewhere\nand more"))).catch(() => {});
    throw new Error("enough");
  });
  expect(error.steps).toEqual([
    "gives (5n)",
    "gives",
    'gives ({"a":[1]})',
    "gives",
    "gives (null)",
    "gives",
    "throws (away)",
    "throws (elsewhere)",
  ]);
});

it("ends without its background tasks", async () => {
  const report = await explore(async ({ task }) => {
    const jobs: (() => void)[] = [];
    const serve = async (): Promise<never> => {
      for (;;) await new Promise<void>((resolve) => void jobs.push(resolve));
    };
    void task("server", serve, { background: true });
    await task("client", ({ step }) => step("asks", () => jobs.shift()?.()));
  });
  expect(report.exhaustive).toBe(true);
});

it("tells apart what could happen in the same words", async () => {
  const error = await failureOf(async ({ step }) => {
    let order = "";
    const go = (letter: string): Promise<void> => step("goes", () => void (order += letter));
    await Promise.all([go("a"), go("b")]);
    if (order === "ba") throw new Error("the wrong way round");
  });
  expect(error.schedule).toEqual(["goes #2", "goes"]);
  await expect(explore(({ task }) => [task("A", () => {}), task("A", () => {})])).rejects.toThrow(
    "name must be new, got A again",
  );
});

it("gives the same chance in each schedule, and another with another seed", async () => {
  const [one, two] = [await draw(1), await draw(2)];
  expect([one.size, two.size, [...one].join() === [...two].join()]).toEqual([1, 1, false]);
});

it("refuses a scenario that does not do the same each time", async () => {
  let run = 0;
  const fickle = async ({ task }: ExploreStage): Promise<void> => {
    run += 1;
    const labels = ["A", run > 1 ? "C" : "B"];
    await Promise.all(labels.map((name) => task(name, () => {})));
  };
  await expect(explore(fickle)).rejects.toThrow(
    'the scenario must do the same each time: at step 1 it could "A starts", "B starts", and now "A starts", "C starts"',
  );
  run = 0;
  const short = async ({ task }: ExploreStage): Promise<void> => {
    run += 1;
    if (run !== 2) await Promise.all(["A", "B"].map((name) => task(name, () => {})));
  };
  await expect(explore(short)).rejects.toThrow(
    'the scenario must do the same each time: at step 1 it could "A starts", "B starts", and now it ends',
  );
  run = 0;
  const choosy = ({ choose }: ExploreStage): unknown => choose("takes", (run += 1) === 1 ? [1, 2] : [1, 2, 3]);
  await expect(explore(choosy)).rejects.toThrow(/^the scenario must do the same each time/);
});

it("never comes to the end of a timer that has none", async () => {
  const found = await failureOf(({ task, clock }) =>
    task("A", () => new Promise<void>((resolve) => void clock.setTimer(Infinity, { onTimer: resolve }))),
  );
  expect([found.kind, found.steps]).toEqual(["stuck", ["A starts"]]);
});

it("tells thousands of equal choices apart without comparing each with each", async () => {
  const items = Array.from({ length: 20_000 }, () => "item");
  const report = await explore(({ choose }) => choose("takes", items), { maxSchedules: 3, randomSchedules: 0 });
  expect(report).toMatchObject({ schedules: 3, exhaustive: false });
});

it("hands on what a step gave though it can't be shown", async () => {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  const boxes: unknown[] = [];
  await explore(async ({ step }) => boxes.push([await step("gives", () => [proxy])]));
  await explore(({ step }) =>
    step("throws", () => Promise.reject(proxy)).catch((error) => boxes.push(error === proxy)),
  );
  expect([boxes.length, boxes[1]]).toEqual([2, true]);
});

it("refuses a task without a name, or with one that another has", async () => {
  const refusals: readonly [unknown, string][] = [
    ["", "name must not be empty"],
    ["A", "name must be new, got A again"],
    [5, "name must be a string, got number"],
  ];
  for (const [name, message] of refusals) {
    const found = await failureOf(async ({ task }) => {
      void task("A", () => {});
      await task(name as string, () => {});
    });
    expect(found.message).toContain(message);
  }
});

it("refuses bad options", async () => {
  const calls: readonly [ExploreOptions, string][] = [
    [{ seed: 0.5 }, "seed must be an integer >= -9007199254740991, got 0.5"],
    [{ maxSchedules: 0 }, "maxSchedules must be an integer >= 1, got 0"],
    [{ randomSchedules: -1 }, "randomSchedules must be an integer >= 0, got -1"],
    [{ maxSteps: 0 }, "maxSteps must be an integer >= 1, got 0"],
    [{ schedule: "A starts" as never }, "schedule must be a list of strings, got string"],
    [{ schedule: null as never }, "schedule must be a list of strings, got null"],
  ];
  await expect(explore(undefined as never)).rejects.toThrow("scenario must be a function, got undefined");
  for (const [options, message] of calls) await expect(explore(() => {}, options)).rejects.toThrow(message);
});

async function calm({ task }: ExploreStage): Promise<void> {
  await Promise.all(["A", "B", "C"].map((name) => task(name, ({ step }) => step("goes on"))));
}

async function spin({ step }: ExploreStage): Promise<void> {
  for (;;) await step("looks again");
}

function eager({ choose }: ExploreStage): void {
  let times = 0;
  while (choose("goes on", [true, false])) if ((times += 1) > 20) throw new Error("it was not cut");
}

/** The numbers that the schedules were given. */
async function draw(seed: number): Promise<Set<string>> {
  const seen = new Set<string>();
  await explore(
    async ({ task, random }) => {
      const numbers = [random(), random()];
      await Promise.all([task("A", () => {}), task("B", () => {})]);
      seen.add(numbers.join());
    },
    { seed },
  );
  return seen;
}

async function twoDeposits({ task }: ExploreStage): Promise<void> {
  let balance = 0;
  const deposit = (name: string): Promise<void> =>
    task(name, async ({ step }) => {
      const read = await step("reads the balance", () => balance);
      await step("writes the balance", () => (balance = read + 10));
    });
  await Promise.all(["A", "B"].map(deposit));
  if (balance !== 20) throw new Error(`the balance is ${balance}, not 20`);
}

async function manyDeposits({ task }: ExploreStage): Promise<void> {
  let balance = 0;
  const deposits = ["A", "B", "C"].map((name) =>
    task(name, async ({ step }) => {
      for (let day = 1; day <= 3; day += 1) {
        const read = await step(`reads on day ${day}`, () => balance);
        await step(`writes on day ${day}`, () => (balance = read + 1));
      }
    }),
  );
  await Promise.all(deposits);
  if (balance !== 9) throw new Error(`the balance is ${balance}, not 9`);
}

function switches(schedule: readonly string[]): number {
  return schedule.filter((step, index) => index > 0 && step[0] !== schedule[index - 1]?.[0]).length;
}

async function failureOf(scenario: Scenario, options?: ExploreOptions): Promise<ExploreError> {
  const result: ExploreReport | ExploreError = await explore(scenario, options).catch((error: ExploreError) => error);
  if (result instanceof ExploreError) return result;
  throw new Error(`expected an ExploreError, got ${JSON.stringify(result)}`, { cause: result });
}
