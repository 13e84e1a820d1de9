/** Imports the module of procedures that its user named. */
import type { ProcedureModule } from "./procedures.ts";

export async function loadProcedures(url: string | undefined): Promise<ProcedureModule | undefined> {
  if (url === undefined) return undefined;
  const { default: found } = (await import(url)) as { readonly default?: ProcedureModule };
  if (Array.isArray(found?.migrations) && typeof found.prepare === "function") return found;
  throw new TypeError(`procedures must name a module whose default export has migrations and prepare, got ${url}`);
}
