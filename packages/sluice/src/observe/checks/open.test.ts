import { expect, it } from "vitest";
import { CircuitBreaker } from "../../resilience/circuit-breaker.ts";
import { VirtualClock } from "../../testing/virtual-clock.ts";
import { doctor } from "../doctor.ts";
import type { Report } from "../report.ts";

function fail(): never {
  throw new Error("down");
}

/** Looks at a breaker each second while it is called ten times a second. */
class Watched {
  readonly clock: VirtualClock = new VirtualClock();
  readonly breaker: CircuitBreaker;

  constructor(name: string) {
    this.breaker = new CircuitBreaker({ name, failures: 1, cooldownMs: 10_000, clock: this.clock });
  }

  async pass(seconds: number, fn: () => unknown, callsPerSecond = 10): Promise<Report[]> {
    let reports: Report[] = [];
    for (let second = 0; second < seconds; second += 1) {
      for (let call = 0; call < callsPerSecond; call += 1) await this.breaker.run(fn).catch(() => {});
      await this.clock.advance(1_000);
      reports = this.look();
    }
    return reports;
  }

  look(): Report[] {
    const { name } = this.breaker;
    return doctor({ clock: this.clock }).filter(({ id, subject }) => id === "H15" && subject.name === name);
  }
}

it("D05: H15 tells of a breaker that stays open long past its cooldown while calls come", async () => {
  const watched = new Watched("payments");
  expect(await watched.pass(60, fail)).toEqual([]);
  const [report] = await watched.pass(5, fail);
  expect(report).toMatchObject({ failureModes: ["D05"], subject: { kind: "circuit-breaker", name: "payments" } });
  expect(report?.evidence).toMatch(
    /^circuit-breaker "payments" has not closed again for 6\d s: it turned \d{3} calls away, and \d trials failed$/,
  );
  expect(report?.facts["trials"]).toBe(6);
});

it("D05: H15 is over once the breaker has closed, and begins anew", async () => {
  const watched = new Watched("stock");
  expect(await watched.pass(70, fail)).toHaveLength(1);
  expect(await watched.pass(12, () => 1)).toEqual([]);
  expect(watched.breaker.state).toBe("closed");
  expect(await watched.pass(30, fail)).toEqual([]);
});

it("H15 leaves alone a breaker that nobody calls, or that was never open", async () => {
  const quiet = new Watched("quiet");
  await quiet.pass(1, fail, 1);
  expect(await quiet.pass(100, fail, 0)).toEqual([]);
  expect(await new Watched("healthy").pass(100, () => 1)).toEqual([]);
});
