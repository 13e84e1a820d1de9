/** The module that the store's writer thread loads. */
import type { ProcedureModule } from "@sluice/jobs/sqlite";
import { prepareAttempts } from "./attempts.ts";
import { prepareIntake } from "./intake.ts";
import { migrations } from "./schema.ts";
import { prepareUpkeep } from "./upkeep.ts";

const module: ProcedureModule = {
  migrations,
  prepare: (db) => ({ ...prepareIntake(db), ...prepareAttempts(db), ...prepareUpkeep(db) }),
};

export default module;
