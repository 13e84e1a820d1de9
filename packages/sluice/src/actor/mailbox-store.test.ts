import { setImmediate as turn } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import * as fc from "fast-check";
import { expect, it } from "vitest";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { Ask } from "./ask.ts";
import { MailboxStore } from "./mailbox-store.ts";

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

type Sent = number | Ask<number, void>;

it("hands out in order what stays, whatever leaves between and when", () => {
  const step = fc.constantFrom("tell", "ask", "ask", "forget", "forget", "shift");
  const plans = fc.property(fc.array(step, { maxLength: 200 }), (plan) => {
    const store = new MailboxStore<number, void>(new VirtualClock());
    const model: Sent[] = [];
    for (const [id, kind] of plan.entries()) {
      const ask = model.findLast((entry) => entry instanceof Ask);
      if (kind === "forget" && ask !== undefined) {
        store.forget(ask);
        model.splice(model.indexOf(ask), 1);
      } else if (kind === "shift" && model.length > 0) expect(store.shift()).toBe(model.shift());
      else if (kind === "tell" || kind === "ask") {
        const sent = kind === "tell" ? id : new Ask<number, void>(id, undefined);
        store.add(sent);
        model.push(sent);
      }
      expect([store.size, store.size === 0 ? undefined : store.peek()]).toEqual([model.length, model[0]]);
    }
    expect(store.clear()).toEqual(model);
  });
  return fc.assert(plans, { numRuns: 300 });
});

it("loses nothing that came after many that have left", () => {
  const store = new MailboxStore<number, void>(new VirtualClock());
  const asks = Array.from({ length: 500 }, (_, id) => new Ask<number, void>(id, undefined));
  store.add(-1);
  for (const [id, ask] of asks.entries()) {
    store.add(ask);
    if (id % 5 === 0) store.add(id);
    if (id === 250) store.peek(); // what comes after it is kept apart
  }
  for (const ask of asks) store.forget(ask);
  expect(store.size).toBe(101);
  expect(store.clear()).toEqual([-1, ...Array.from({ length: 100 }, (_, index) => 5 * index)]);
});

it("keeps nothing of most that have left, though what came before them is still there", async () => {
  const store = new MailboxStore<number, void>(new VirtualClock());
  store.add(-1);
  const left = Array.from({ length: 10_000 }, (_, id) => {
    const ask = new Ask<number, void>(id, undefined);
    store.add(ask);
    store.forget(ask);
    return new WeakRef(ask);
  });
  await turn(); // what a WeakRef was made of stays for the rest of its turn
  collectGarbage();
  expect(left.filter((ref) => ref.deref() !== undefined).length).toBeLessThan(1_000);
  expect(store.shift()).toBe(-1);
});
