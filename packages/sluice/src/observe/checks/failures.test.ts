import { expect, it } from "vitest";
import { fanOut } from "../../flow/fan-out.ts";
import { mapLimit } from "../../flow/map-limit.ts";
import { notice } from "../../internal/probe.ts";
import { taskGroup } from "../../scope/task-group.ts";
import { Semaphore } from "../../sync/semaphore.ts";
import { turn } from "../../testing/turn.ts";
import { VirtualClock } from "../../testing/virtual-clock.ts";
import { doctor, type DoctorOptions } from "../doctor.ts";
import { enable } from "../enable.ts";
import type { Report } from "../report.ts";

function reports(id: string, options: DoctorOptions = {}): Report[] {
  return doctor({ clock: new VirtualClock(), ...options }).filter((each) => each.id === id);
}

async function failLate(message: string): Promise<never> {
  await turn();
  throw new Error(message);
}

async function failNow(): Promise<never> {
  throw new Error("first");
}

/** Three children, of which the first fails at once and the others when it is over. */
function groupThatFails(name: string, onLateError?: () => void): Promise<unknown> {
  const joined = taskGroup(
    (group) => {
      for (const child of [1, 2, 3]) void group.run(() => (child === 1 ? failNow() : failLate(`late ${child}`)));
    },
    { name, onLateError },
  );
  return joined.catch(() => {});
}

/** Two calls, of which one fails at once and the other when it is over. */
async function mapThatFails(onLateError?: () => void): Promise<void> {
  await mapLimit([1, 2], 2, (item) => (item === 1 ? failNow() : failLate("second")), { onLateError }).catch(() => {});
  await turn();
  await turn();
}

function fan(count: number, run: () => unknown): Promise<unknown> {
  return fanOut(Object.fromEntries(Array.from({ length: count }, (_one, index) => [`call ${index}`, run])));
}

/** What has this name, for as long as the test holds it. */
function named(name: string): object {
  const semaphore = new Semaphore(1, { name });
  kept.push(semaphore);
  return semaphore;
}

const kept: object[] = [];

it("F02.4: H09 tells of failures that nobody was told of, by kind and name, with the last of them", async () => {
  using _ = enable();
  await groupThatFails("heard", () => {});
  expect(reports("H09")).toEqual([]);
  await groupThatFails("unheard");
  await turn();
  expect(reports("H09")).toMatchObject([
    {
      failureModes: ["F02.4", "F06.5"],
      subject: { kind: "task-group", name: "unheard" },
      evidence: 'task-group "unheard" had 2 failures that nobody was told of, the last of them Error: late 3',
      facts: { count: 2, error: "Error: late 3" },
    },
  ]);
});

it("H09 tells of a failure of which no words can be made, and of what else is wrong", async () => {
  using _ = enable();
  const { proxy, revoke } = Proxy.revocable(new Error("gone"), {});
  revoke();
  for (const [name, error] of [
    ["bare", Object.create(null)],
    ["revoked", proxy],
  ] as const) {
    const rejecting = [() => Promise.reject(new Error("first")), () => turn().then(() => Promise.reject(error))];
    await taskGroup((group) => rejecting.forEach((child) => void group.run(child)), { name }).catch(() => {});
  }
  await turn();
  const told = reports("H09").map(({ evidence }) => evidence);
  expect(told).toEqual(
    ["bare", "revoked"].map(
      (name) => `task-group "${name}" had 1 failure that nobody was told of, the last of them object`,
    ),
  );
});

it("H09 keeps the failures of the latest thousand names, however many are made up", async () => {
  using _ = enable();
  const late = new Error("late");
  const fail = (name: string): unknown => notice?.("failed", named(name), late);
  for (let made = 0; made < 1_000; made += 1) fail(`made-${made}`);
  await turn();
  fail("made-0");
  fail("made-1000");
  await turn();
  const names = reports("H09").map(({ subject }) => subject.name);
  expect([names.length, names.includes("made-1"), names.at(-2), names.at(-1)]).toEqual([
    1_000,
    false,
    "made-0",
    "made-1000",
  ]);
  expect(reports("H09").at(-2)).toMatchObject({ facts: { count: 2 } });
});

it("F05.3: H09 tells of errors that came after a map had failed, unless they were told", async () => {
  using _ = enable();
  await mapThatFails(() => {});
  expect(reports("H09")).toEqual([]);
  await mapThatFails();
  expect(reports("H09")).toMatchObject([{ subject: { kind: "map-limit", name: undefined }, facts: { count: 1 } }]);
});

it("forgets with the watch what it saw", async () => {
  {
    using _ = enable();
    await mapThatFails();
    expect(reports("H09")).toHaveLength(1);
  }
  expect(reports("H09")).toEqual([]);
  using _ = enable();
  expect(reports("H09")).toEqual([]);
});

it("F05.5: H16 tells how many calls came of fan-outs within fan-outs", async () => {
  using _ = enable();
  await fan(5, () => fan(5, () => 1));
  const [report] = reports("H16");
  expect(report).toMatchObject({
    failureModes: ["F05.1", "F05.5"],
    evidence: "a fan-out without a name made 25 calls of one, over 2 levels that each look small",
    facts: { width: 25, depth: 2 },
  });
  expect(String(report?.facts["startedAt"])).toContain("failures.test.ts");
  expect(reports("H16", { maxWidth: 25 })).toEqual([]);
});

it("F05.5: leaves a wide fan-out alone that is written down in one place, and small ones within each other", async () => {
  using _ = enable();
  await fan(40, () => 1);
  await fan(4, () => fan(5, () => 1));
  expect(reports("H16")).toEqual([]);
});
