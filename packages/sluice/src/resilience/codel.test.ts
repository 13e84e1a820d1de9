import { expect, it } from "vitest";
import { sleep } from "../clock/sleep.ts";
import { OverloadedError } from "../errors.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import type { AdaptiveLimiterRunOptions } from "./adaptive-limiter-options.ts";
import { AdaptiveLimiter } from "./adaptive-limiter.ts";
import { codel, type CodelOptions } from "./codel.ts";

/** One place, in which a call takes 10 ms. */
class Desk {
  readonly clock = new VirtualClock();
  /** In the order in which they ran: who, and after how long. */
  readonly served: string[] = [];
  readonly refused: string[] = [];
  readonly #limiter: AdaptiveLimiter;

  constructor(options: CodelOptions) {
    const discipline = codel(options);
    this.#limiter = new AdaptiveLimiter(() => ({ next: (limit) => limit }), {
      initialConcurrency: 1,
      clock: this.clock,
      discipline,
    });
  }

  come(id: string, options: AdaptiveLimiterRunOptions = {}): void {
    const cameAt = this.clock.now();
    const serve = (): Promise<void> => {
      this.served.push(`${id} ${this.clock.now() - cameAt}`);
      return sleep(10, { clock: this.clock });
    };
    this.#limiter.run(serve, options).catch((error: unknown) => {
      expect(error).toBeInstanceOf(OverloadedError);
      this.refused.push(`${id} ${this.clock.now() - cameAt}`);
    });
  }

  /** `a`, `b`, … each so many milliseconds after the one before. */
  async comeEvery(ms: number, ids: string): Promise<void> {
    for (const id of ids) {
      this.come(id);
      await this.clock.advance(ms);
    }
  }
}

it("takes up a burst, in order, while none of it waits longer than the interval", async () => {
  const desk = new Desk({ targetMs: 5, intervalMs: 100 });
  await desk.comeEvery(0, "abcdefghij");
  await desk.clock.advance(200);
  expect(desk.served).toEqual(Array.from("abcdefghij", (id, index) => `${id} ${index * 10}`));
  expect(desk.refused).toEqual([]);
});

it("turns away who has waited for the interval, though nobody leaves a place meanwhile", async () => {
  const desk = new Desk({ targetMs: 5, intervalMs: 30 });
  await desk.comeEvery(0, "abcdef");
  await desk.clock.advance(200);
  expect(desk.served).toEqual(["a 0", "b 10", "c 20"]);
  expect(desk.refused).toEqual(["d 30", "e 30", "f 30"]);
});

it("lets nobody wait longer than the target once the line has not been empty for the interval, and serves the newest", async () => {
  const desk = new Desk({ targetMs: 12, intervalMs: 50 });
  const ids = "abcdefghijklmnopqrstuvwxyz";
  await desk.comeEvery(5, ids); // twice as many as can be served
  await desk.clock.advance(200);
  expect(desk.served.length + desk.refused.length).toBe(ids.length);
  const late = desk.served.filter((entry) => (entry[0] ?? "") >= "n");
  expect(late.length).toBeGreaterThan(4);
  for (const entry of late) expect(Number(entry.slice(2))).toBeLessThanOrEqual(12);
  expect(Math.min(...late.map((entry) => Number(entry.slice(2))))).toBeLessThan(6);
});

it("serves the oldest in a standing line, too, if it is told to", async () => {
  expect(await lateOrder(false)).toBe("wxyz");
  expect(await lateOrder(true)).toBe("zyxw");
});

async function lateOrder(newestFirst: boolean): Promise<string> {
  const desk = new Desk({ targetMs: 100, intervalMs: 20, newestFirst });
  await desk.comeEvery(1, "abcdefghijklmnopqrstuvwxyz"); // from `w` on, the line is a standing one
  await desk.clock.advance(200);
  const late = desk.served.filter((entry) => entry >= "w");
  return late.map(([id]) => id).join("");
}

it("forgets a standing line as soon as it has been empty", async () => {
  const desk = new Desk({ targetMs: 5, intervalMs: 30 });
  await desk.comeEvery(5, "abcdefghijkl");
  await desk.clock.advance(100);
  const before = desk.refused.length;
  expect(before).toBeGreaterThan(0);
  await desk.comeEvery(0, "mno");
  await desk.clock.advance(100);
  expect(desk.served.slice(-3)).toEqual(["m 0", "n 10", "o 20"]);
  expect(desk.refused).toHaveLength(before);
});

it("lets priority go before newness", async () => {
  const desk = new Desk({ targetMs: 50, intervalMs: 10 });
  await desk.comeEvery(3, "abcdef");
  desk.come("critical", { criticality: "critical" });
  desk.come("new");
  await desk.clock.advance(200);
  const order = desk.served.map((entry) => entry.split(" ")[0]);
  expect(order.indexOf("critical")).toBeLessThan(order.indexOf("new"));
});

it("keeps a state for each limiter", async () => {
  const discipline = codel({ targetMs: 5, intervalMs: 10 });
  const [one, other] = [discipline(), discipline()];
  one.join(0, 0);
  expect(one.join(20, 1)).toEqual({ maxWaitMs: 5, isNewestFirst: true });
  expect(other.join(20, 0)).toEqual({ maxWaitMs: 10, isNewestFirst: false });
  expect(one.join(21, 1)).toEqual({ maxWaitMs: 5, isNewestFirst: true });
});

it.each([
  [{ targetMs: 0 }, "targetMs must be finite and >= 1, got 0"],
  [{ intervalMs: Infinity }, "intervalMs must be finite and >= 1, got Infinity"],
])("refuses %j", (options, why) => {
  expect(() => codel(options)).toThrow(why);
});
