import type { DatabaseSync } from "node:sqlite";
import { expectTypeOf, it } from "vitest";
import { Jobs } from "./client.ts";
import type { Added, Json } from "./job.ts";
import { MemoryStore } from "./memory/memory-store.ts";
import { SETTLED, snooze } from "./outcome.ts";
import { Worker } from "./worker.ts";

const store = new MemoryStore();
declare const db: DatabaseSync;

it("knows the queues and what their jobs carry", () => {
  const jobs = new Jobs<{ mail: { to: string }; report: number }>(store);
  expectTypeOf(jobs.add("mail", { to: "a" })).toEqualTypeOf<Promise<Added>>();
  expectTypeOf(jobs.addMany("report", [1])).toEqualTypeOf<Promise<Added[]>>();
  expectTypeOf(jobs.addWithin(db, "mail", { to: "a" }, { priority: 1 })).toEqualTypeOf<Added>();
  // @ts-expect-error -- it could fail only after the commit
  void jobs.add("mail", { to: "a" }, { transaction: db });
  // @ts-expect-error -- another queue's payload
  void jobs.addWithin(db, "mail", 1);
  // @ts-expect-error -- no such queue
  void jobs.add("male", { to: "a" });
  // @ts-expect-error -- another queue's payload
  void jobs.add("mail", 1);
  // @ts-expect-error -- no such option
  void jobs.add("report", 1, { delay: 5 });
  // @ts-expect-error -- no JSON
  void new Jobs<{ mail: Date }>(store);
});

it("takes any queue and any JSON unless told otherwise", () => {
  expectTypeOf(new Jobs(store).add("any", [{ a: null }])).toEqualTypeOf<Promise<Added>>();
  // @ts-expect-error -- no JSON
  void new Jobs(store).add("any", new Map());
});

it("takes a class, an interface or a type for a payload as long as it is JSON", () => {
  type Mail = { readonly to: string; readonly cc?: string };
  void new Worker<Mail>(store, "mail", ({ payload }) => {
    expectTypeOf(payload).toEqualTypeOf<Mail>();
  });
});

it("lets a handler return JSON, nothing, a snooze or SETTLED, promised or not", () => {
  void new Worker(store, "q", () => {});
  void new Worker(store, "q", async () => {});
  void new Worker(store, "q", () => ({ a: 1 }));
  void new Worker(store, "q", async () => SETTLED);
  void new Worker(store, "q", async ({ attempt }) => (attempt < 3 ? snooze(5) : undefined));
  void new Worker(store, "q", ({ payload }) => {
    expectTypeOf(payload).toEqualTypeOf<Json>();
  });
  // @ts-expect-error -- no JSON
  void new Worker(store, "q", () => new Map());
});
