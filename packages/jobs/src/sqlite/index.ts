export { StoreBusyError, StoreFailedError, StoreOpenError } from "./errors.ts";
export type { JobsInTransaction, Procedure, ProcedureModule } from "./procedures.ts";
export { SqliteStore, type SqliteStoreOptions } from "./sqlite-store.ts";
