/** An error on its way between threads: a copy would keep neither its class nor its own fields. */
import { StoreBusyError, StoreOpenError } from "./errors.ts";

export interface Failure {
  readonly name: string;
  readonly message: string;
  readonly stack: string | undefined;
  /** Its own, `code` among them, as far as they are plain values. */
  readonly fields: Readonly<Record<string, string | number | boolean>>;
  readonly cause: Failure | undefined;
}

const OWN: ReadonlySet<string> = new Set(["name", "message", "stack", "cause"]);
const PLAIN: ReadonlySet<string> = new Set(["string", "number", "boolean"]);
const MAX_CAUSES = 8;

/** Whatever was thrown: it must not keep the answers of the others from being given. */
export function toFailure(error: unknown, depth = 0): Failure {
  try {
    return describe(error, depth);
  } catch {
    return { name: "Error", message: "an error that can't be shown", stack: undefined, fields: {}, cause: undefined };
  }
}

function describe(error: unknown, depth: number): Failure {
  if (!(error instanceof Error))
    return { name: "Error", message: String(error), stack: undefined, fields: {}, cause: undefined };
  const { name, message, stack, cause }: { readonly [K in keyof Error]: unknown } = error;
  const plain = Object.entries(error).filter(([key, value]) => !OWN.has(key) && PLAIN.has(typeof value));
  const fields = Object.fromEntries(plain) as Failure["fields"];
  const goOn = cause !== undefined && depth < MAX_CAUSES;
  return {
    name: String(name),
    message: String(message),
    stack: typeof stack === "string" ? stack : undefined, // `Error.prepareStackTrace` may have made something else of it
    fields,
    cause: goOn ? toFailure(cause, depth + 1) : undefined,
  };
}

export function toError({ name, message, stack, fields, cause }: Failure): Error {
  const options = cause === undefined ? undefined : { cause: toError(cause) };
  if (name === "StoreBusyError") return new StoreBusyError(Number(fields["waitedMs"]));
  if (name === "StoreOpenError") return new StoreOpenError(String(fields["path"]), String(fields["reason"]), options);
  const error = Object.assign(new Error(message, options), fields);
  Object.defineProperty(error, "name", { value: name, configurable: true, writable: true });
  if (stack !== undefined) error.stack = stack;
  return error;
}
