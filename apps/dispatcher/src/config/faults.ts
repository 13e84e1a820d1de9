/** What is wrong with a configuration, said so that a person can put it right: where, which rule, which value. */

export type FaultPath = readonly (string | number)[];

export interface Fault {
  /** Into the file; empty for the whole. */
  readonly path: FaultPath;
  /** The rule, and the value that breaks it: `must be an integer >= 1, got 0`. */
  readonly message: string;
  /** In the file, from 1; undefined if the configuration did not come from one. */
  readonly line?: number | undefined;
}

/** All that is wrong, not only the first. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
  readonly code = "CONFIG_INVALID";
  readonly file: string | undefined;
  readonly faults: readonly Fault[];

  constructor(faults: readonly Fault[], file?: string, options?: ErrorOptions) {
    super(faults.map((fault) => describeFault(fault, file)).join("\n"), options);
    this.file = file;
    this.faults = faults;
  }
}

/** One line: `sluice.yaml:12: limits.retries must be an integer >= 0, got -1`. */
export function describeFault({ path, message, line }: Fault, file?: string): string {
  const where = [file, line].filter((part) => part !== undefined).join(":");
  return [where === "" ? "" : `${where}: `, path.length === 0 ? "" : `${pathText(path)} `, message].join("");
}

/** `rules[3].to.roles[0]`. */
function pathText(path: FaultPath): string {
  const parts = path.map((key) => {
    if (typeof key === "number") return `[${key}]`;
    return /^[\w-]+$/.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`;
  });
  return parts.join("").replace(/^\./, "");
}

const MAX_SHOWN = 80;

/** A value as it may stand in a message. */
export function show(value: unknown): string {
  if (value === undefined) return "nothing";
  if (typeof value === "number") return String(value); // JSON has no Infinity
  const text = JSON.stringify(value) ?? typeof value;
  return text.length <= MAX_SHOWN ? text : `${text.slice(0, MAX_SHOWN)}…`;
}
