// Four faults that no test with a fixed order finds, each in the form in which it is written every day, and the same
// scenario with what sluice has in its place.
import { expect, it } from "vitest";
import { Queue } from "../flow/queue.ts";
import { select } from "../flow/select.ts";
import { taking } from "../flow/select-clause.ts";
import { Condition } from "../sync/condition.ts";
import { Mutex } from "../sync/mutex.ts";
import { Semaphore } from "../sync/semaphore.ts";
import { explore, type ExploreReport } from "./explore.ts";
import type { ExploreActor, Scenario } from "./explore/scenario.ts";

interface Account {
  balance: number;
}

/** Two who draw 60 from 100; only one may have it. */
function drawing(draw: (account: Account, actor: ExploreActor) => Promise<void>): Scenario {
  return async ({ task, invariant }) => {
    const account = { balance: 100 };
    invariant("the balance is not negative", () => account.balance >= 0);
    await Promise.all(["Ann", "Bob"].map((name) => task(name, (actor) => draw(account, actor))));
  };
}

async function checkThenAct(account: Account, { step }: ExploreActor): Promise<void> {
  const enough = await step("asks whether there are 60", () => account.balance >= 60);
  if (enough) await step("draws 60", () => (account.balance -= 60));
}

it("finds a check and an act with an await between them", async () => {
  expect(await failureOf(drawing(checkThenAct))).toBe(
    [
      "it does not hold that the balance is not negative, when",
      "  1. Ann starts",
      "  2. Ann asks whether there are 60 (true)",
      "  3. Bob starts",
      "  4. Bob asks whether there are 60 (true)",
      "  5. Bob draws 60 (40)",
      "  6. Ann draws 60 (-20)",
    ].join("\n"),
  );
});

it("finds nothing in a check and an act under one mutex", async () => {
  const mutexes = new WeakMap<Account, Mutex>();
  const draw = (account: Account, actor: ExploreActor): Promise<void> => {
    const mutex = mutexes.get(account) ?? new Mutex();
    mutexes.set(account, mutex);
    return mutex.run(() => checkThenAct(account, actor));
  };
  expect(await passed(drawing(draw))).toBe(true);
});

interface Mailbox {
  put(letter: string, actor: ExploreActor): Promise<void>;
  take(actor: ExploreActor): Promise<string>;
}

function mailing(open: () => Mailbox): Scenario {
  return async ({ task }) => {
    const mailbox = open();
    const reader = task("reader", (actor) => mailbox.take(actor));
    await task("writer", (actor) => mailbox.put("hello", actor));
    expect(await reader).toBe("hello");
  };
}

/** A letter that comes after the look and before the wait wakes nobody. */
class LossyMailbox implements Mailbox {
  readonly #letters: string[] = [];
  readonly #wakers: (() => void)[] = [];

  async put(letter: string, { step }: ExploreActor): Promise<void> {
    await step("puts a letter", () => {
      this.#letters.push(letter);
      this.#wakers.shift()?.();
    });
  }

  async take({ step }: ExploreActor): Promise<string> {
    while (this.#letters.length === 0) {
      await step("finds it empty, and lies down");
      await new Promise<void>((wake) => void this.#wakers.push(wake));
    }
    return this.#letters.shift() ?? "nothing";
  }
}

class ConditionMailbox implements Mailbox {
  readonly #letters: string[] = [];
  readonly #mutex = new Mutex();
  readonly #notEmpty = new Condition(this.#mutex);

  put(letter: string, { step }: ExploreActor): Promise<void> {
    return this.#mutex.run(async () => {
      await step("puts a letter", () => void this.#letters.push(letter));
      this.#notEmpty.signal();
    });
  }

  take({ step }: ExploreActor): Promise<string> {
    return this.#mutex.run(async ({ guard }) => {
      while (this.#letters.length === 0) {
        await step("finds it empty, and lies down");
        await this.#notEmpty.wait(guard);
      }
      return this.#letters.shift() ?? "nothing";
    });
  }
}

class QueueMailbox implements Mailbox {
  readonly #letters = new Queue<string>(1);

  async put(letter: string, { step }: ExploreActor): Promise<void> {
    await step("puts a letter", () => this.#letters.put(letter));
  }

  take({ step }: ExploreActor): Promise<string> {
    return step("takes a letter", () => this.#letters.take());
  }
}

it("finds a wake-up that is lost between look and wait", async () => {
  const found = await failureOf(mailing(() => new LossyMailbox()));
  expect(found).toBe(
    [
      "nothing can go on: reader waits for ever, when",
      "  1. reader starts",
      "  2. writer starts",
      "  3. writer puts a letter",
      "  4. reader finds it empty, and lies down",
    ].join("\n"),
  );
});

it("finds no lost wake-up with a Condition, nor with a Queue", async () => {
  expect(await passed(mailing(() => new ConditionMailbox()))).toBe(true);
  expect(await passed(mailing(() => new QueueMailbox()))).toBe(true);
});

interface Lock {
  acquire(): Promise<unknown>;
  release(): void;
}

/** Whoever asked first has it first, though one of the two asks again as soon as it is done. */
function sharing(open: () => Lock): Scenario {
  return async ({ task }) => {
    const lock = open();
    const [asked, got]: [string[], string[]] = [[], []];
    const use = (name: string, times: number): Promise<void> =>
      task(name, async ({ step }) => {
        for (let time = 0; time < times; time += 1) {
          asked.push(name);
          await lock.acquire();
          got.push(name);
          await step("works");
          lock.release();
        }
      });
    await Promise.all([use("eager", 2), use("patient", 1)]);
    expect(got).toEqual(asked);
  };
}

/** What is given back is there for everybody, until the one who was woken has come. */
class BargingSemaphore implements Lock {
  #free = 1;
  readonly #wakers: (() => void)[] = [];

  async acquire(): Promise<void> {
    while (this.#free === 0) await new Promise<void>((wake) => void this.#wakers.push(wake));
    this.#free -= 1;
  }

  release(): void {
    this.#free += 1;
    this.#wakers.shift()?.();
  }
}

class FairLock implements Lock {
  readonly #semaphore = new Semaphore(1);
  readonly #held: { release(): void }[] = [];

  async acquire(): Promise<void> {
    this.#held.push(await this.#semaphore.acquire());
  }

  release(): void {
    this.#held.shift()?.release();
  }
}

it("finds a semaphore that lets a newcomer overtake whoever waits", async () => {
  const found = await failureOf(sharing(() => new BargingSemaphore()));
  expect(found.split(", when\n")[1]?.split("\n")).toEqual([
    "  1. eager starts",
    "  2. patient starts",
    "  3. eager works",
    "  4. eager works",
    "  5. patient works",
  ]);
});

it("finds nobody overtaken at a Semaphore", async () => {
  expect(await passed(sharing(() => new FairLock()))).toBe(true);
});

type Select = (one: Queue<string>, other: Queue<string>) => Promise<string>;

/** One letter comes on each of two queues; a reader takes whichever is there, twice. */
function selecting(take: Select): Scenario {
  return async ({ task }) => {
    const [one, other] = [new Queue<string>(1), new Queue<string>(1)];
    const reader = task("reader", async ({ step }) => {
      const first = await step("takes what is there", () => take(one, other));
      return [first, await step("takes what is there now", () => take(one, other))];
    });
    const write = (name: string, queue: Queue<string>): Promise<unknown> => task(name, () => queue.put(`from ${name}`));
    await Promise.all([write("Ann", one), write("Bob", other)]);
    expect((await reader).toSorted()).toEqual(["from Ann", "from Bob"]);
  };
}

it("finds a select by Promise.race, whose loser swallows the next message", async () => {
  const found = await failureOf(selecting((one, other) => Promise.race([one.take(), other.take()])));
  expect(found).toBe(
    [
      "nothing can go on: reader waits for ever, when",
      "  1. Ann starts",
      "  2. reader starts",
      "  3. reader takes what is there (from Ann)",
      "  4. reader takes what is there now",
      "  5. Bob starts",
    ].join("\n"),
  );
});

it("finds nothing swallowed by select, whichever queue it prefers", async () => {
  for (const isSwapped of [false, true]) {
    const take: Select = async (...queues) => {
      const [one, other] = isSwapped ? queues.toReversed() : queues;
      return (await select({ one: one && taking(one), other: other && taking(other) }, { biased: true })).value;
    };
    expect(await passed(selecting(take))).toBe(true);
  }
});

async function failureOf(scenario: Scenario): Promise<string> {
  const report = await explore(scenario).catch((error: Error) => error.message);
  if (typeof report === "string") return report;
  throw new Error(`${report.schedules} schedules are right`);
}

async function passed(scenario: Scenario): Promise<boolean> {
  const report: ExploreReport = await explore(scenario);
  return report.exhaustive && report.schedules > 1;
}
