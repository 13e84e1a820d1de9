import { expect, it } from "vitest";
import { Activity } from "./activity.ts";
import { waitingForLost } from "./checks/held.ts";
import type { Exam } from "./exam.ts";
import { Lender } from "./ledger.ts";
import { WaitFor } from "./wait-for.ts";

/** Something of which one is lent to `holder`. */
class Lent {
  looks = 0;
  readonly lender: Lender;

  constructor(holder: Activity) {
    this.lender = new Lender(this);
    const { lender } = this;
    lender.holds.add({ lender, weight: 1, takenAt: 0, stack: "", by: holder, isOwn: false, isCollected: false });
  }

  wait(by: Activity): void {
    this.lender.waits.add({ lender: this.lender, since: 0, stack: "", by });
  }

  stats(): { held: number } {
    this.looks += 1;
    return { held: 1 };
  }
}

/** Each holds one and waits for the next; the last goes on, or waits for the first. */
function chain(length: number, isRing: boolean): Lent[] {
  const links = Array.from({ length }, () => new Activity());
  const lent = links.map((holder) => new Lent(holder));
  for (const [index, holder] of links.entries())
    if (isRing || index + 1 < length) lent[(index + 1) % length]?.wait(holder);
  return lent;
}

it("looks at each link of a chain twice at most, from whichever end", () => {
  for (const lent of [chain(1_000, false), chain(1_000, false).toReversed()]) {
    const lenders = lent.map(({ lender }) => lender);
    expect(new WaitFor(lenders, 5_000, 5_000).rings()).toEqual([]);
    expect(Math.max(...lent.map(({ looks }) => looks))).toBeLessThanOrEqual(2);
  }
});

it("finds a ring of any length once", () => {
  const lenders = chain(20_000, true).map(({ lender }) => lender);
  expect(new WaitFor(lenders, 5_000, 5_000).rings().map(({ length }) => length)).toEqual([20_000]);
});

it("H02 tells since when the first has waited, of however many", () => {
  const holder = new Activity();
  const { lender } = new Lent(holder);
  for (const hold of lender.holds) hold.isCollected = true;
  for (let waits = 0; waits < 200_000; waits += 1)
    lender.waits.add({ lender, since: 1_000 + waits, stack: "", by: undefined });
  const exam = { lenders: [lender], now: 300_000 } as Partial<Exam> as Exam;
  expect(waitingForLost(exam)).toMatchObject([{ facts: { waiting: 200_000, waitedMs: 299_000 } }]);
});
