/** The one writer of the dispatcher's file: the store of the jobs, with the dispatcher's procedures on its thread. */
import { SqliteStore } from "@sluice/jobs/sqlite";
import { systemClock, type Clock } from "sluice";
import type { Calls } from "./calls.ts";

const PROCEDURES = import.meta.url.endsWith(".ts") ? "./procedures.ts" : "./procedures.js";
const DAY_MS = 86_400_000;

/** Rejects with `StoreOpenError`. */
export function openStore(path: string, clock: Clock = systemClock): Promise<SqliteStore> {
  return SqliteStore.open({
    path,
    clock,
    name: "dispatcher store",
    procedures: new URL(PROCEDURES, import.meta.url),
    // The notification's row is the record of how it ended; its job is gone with that.
    retention: { succeededMs: 0, deadMs: 7 * DAY_MS },
  });
}

/** Durable when it resolves. */
export function call<K extends keyof Calls>(
  store: SqliteStore,
  name: K,
  input: Parameters<Calls[K]>[0],
): Promise<ReturnType<Calls[K]>> {
  return store.call(name, input) as Promise<ReturnType<Calls[K]>>;
}
