/** What an engine is made of, as plain data that can be handed to a thread. */
import { Engine, type EngineOptions } from "./engine.ts";
import { loadProcedures } from "./load.ts";
import { openDatabase, type OpenOptions } from "./open.ts";

export interface Setup extends Omit<OpenOptions & EngineOptions, "isClosing"> {
  /** URL of the module of procedures. */
  readonly procedures: string | undefined;
  /** Shared with the thread; 1 from the moment the store is being closed. */
  readonly closing: Int32Array;
}

export async function openEngine(setup: Setup): Promise<Engine> {
  const options = { ...setup, isClosing: () => Atomics.load(setup.closing, 0) === 1 };
  const procedures = await loadProcedures(setup.procedures);
  const db = openDatabase(options, procedures?.migrations);
  try {
    return new Engine(db, options, procedures);
  } catch (error) {
    db.close();
    throw error;
  }
}
