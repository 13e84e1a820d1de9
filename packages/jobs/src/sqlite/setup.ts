/** What an engine is made of, as plain data that can be handed to a thread. */
import { Engine, type EngineOptions } from "./engine.ts";
import { loadProcedures } from "./load.ts";
import { openDatabase, type OpenOptions } from "./open.ts";

export interface Setup extends Omit<OpenOptions & EngineOptions, "isClosing" | "now" | "pause"> {
  /** URL of the module of procedures. */
  readonly procedures: string | undefined;
  /** Shared with the thread; 1 from the moment the store is being closed. */
  readonly closing: Int32Array;
}

/** `now` is monotonic, in milliseconds. */
export async function openEngine(setup: Setup, now: () => number): Promise<Engine> {
  const options = { ...setup, now, isClosing: () => Atomics.load(setup.closing, 0) === 1 };
  const procedures = await loadProcedures(setup.procedures);
  const db = openDatabase(options, procedures?.migrations);
  try {
    return new Engine(db, options, procedures);
  } catch (error) {
    db.close();
    throw error;
  }
}
