// npm run api [-- --write]: compares what the packages export, by their built declarations, with the reports in docs/api,
// so that no change of a public signature goes unseen in a review. `--write` brings the reports up to date.
import { spawnSync } from "node:child_process";
import { existsSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { parseArgs } from "node:util";
import {
  CompilerState,
  Extractor,
  ExtractorConfig,
  ExtractorLogLevel,
  type ExtractorMessage,
} from "@microsoft/api-extractor";
import { entriesOf, type Entry } from "./entries.ts";

const FOLDER = "docs/api";
/** As the packages are compiled, so far as declarations depend on it. */
const COMPILER = {
  module: "nodenext",
  target: "es2024",
  lib: ["es2024", "esnext.disposable", "dom"],
  types: ["node"],
  strict: true,
  exactOptionalPropertyTypes: true,
  allowImportingTsExtensions: true,
  noEmit: true,
};

/** `sluice-observe.api.md` for `sluice/observe`, `jobs.api.md` for `@sluice/jobs`. */
export function reportName(specifier: string): string {
  return `${specifier.replace("@sluice/", "").replaceAll("/", "-")}.api.md`;
}

function configOf({ folder, types, specifier }: Entry, all: readonly Entry[], into: string): ExtractorConfig {
  const configObject = {
    projectFolder: resolve(folder),
    mainEntryPointFilePath: resolve(types),
    compiler: { overrideTsconfig: { compilerOptions: COMPILER, files: all.map((each) => resolve(each.types)) } },
    apiReport: {
      enabled: true,
      includeForgottenExports: true, // of a base that isn't exported, members are
      reportFileName: reportName(specifier),
      reportFolder: into,
      reportTempFolder: join(into, "temp"),
    },
    docModel: { enabled: false },
    dtsRollup: { enabled: false },
    tsdocMetadata: { enabled: false },
    messages: {
      compilerMessageReporting: { default: { logLevel: ExtractorLogLevel.Error } },
      extractorMessageReporting: { default: { logLevel: ExtractorLogLevel.None } },
      tsdocMessageReporting: { default: { logLevel: ExtractorLogLevel.None } },
    },
  };
  const packageJsonFullPath = resolve(folder, "package.json");
  const configObjectFullPath = resolve(folder, "api-extractor.json"); // which needn't exist: paths are told from there
  return ExtractorConfig.prepare({ configObject, configObjectFullPath, packageJsonFullPath });
}

/** By name of the file. All entries share one program, since it takes longer to make than all reports. */
function reportsOf(entries: readonly Entry[], into: string): Map<string, string> {
  const configs = entries.map((entry) => configOf(entry, entries, into));
  const [first] = configs;
  if (first === undefined) return new Map();
  const compilerState = CompilerState.create(first, {
    additionalEntryPoints: entries.map(({ types }) => resolve(types)),
  });
  return new Map(
    configs.map((config, index) => {
      const { errorCount } = Extractor.invoke(config, { localBuild: true, compilerState, messageCallback: quieten });
      const { specifier = "" } = entries[index] ?? {};
      if (errorCount > 0) throw new Error(`${specifier} has ${errorCount} errors`);
      return [reportName(specifier), readFileSync(config.reportFilePath, "utf8").replaceAll("\r\n", "\n")];
    }),
  );
}

function quieten(message: ExtractorMessage): void {
  message.handled = message.logLevel !== ExtractorLogLevel.Error;
}

/** The first line in which two texts differ, for whoever has to find out what has changed. */
export function firstDifference(before: string, after: string): string | undefined {
  if (before === after) return undefined;
  const [old, next] = [before.split("\n"), after.split("\n")];
  const at = old.findIndex((line, index) => line !== next[index]);
  const line = at === -1 ? old.length : at;
  return `line ${line + 1} was ${JSON.stringify(old[line] ?? "")}, is ${JSON.stringify(next[line] ?? "")}`;
}

if (import.meta.main) {
  const { values } = parseArgs({ options: { write: { type: "boolean", default: false } } });
  const built = spawnSync("tsc", ["-b", ...globSync("packages/*")], { stdio: "inherit" });
  if (built.status !== 0) process.exit(built.status ?? 1);
  mkdirSync("node_modules/.cache", { recursive: true });
  const into = resolve(mkdtempSync("node_modules/.cache/api-"));
  try {
    const reports = reportsOf(entriesOf(), into);
    mkdirSync(FOLDER, { recursive: true });
    for (const [name, text] of reports) {
      const file = join(FOLDER, name);
      const before = existsSync(file) ? readFileSync(file, "utf8") : "";
      const difference = firstDifference(before, text);
      if (difference === undefined) continue;
      if (values.write) writeFileSync(file, text);
      else console.error(`${file}: ${difference}; see what has changed with \`npm run api -- --write\``);
      process.exitCode = values.write ? 0 : 1;
    }
    for (const file of globSync(join(FOLDER, "*.api.md")).filter((each) => !reports.has(basename(each)))) {
      if (values.write) rmSync(file);
      else console.error(`${file} is of no entry point`);
      process.exitCode = values.write ? 0 : 1;
    }
  } finally {
    rmSync(into, { recursive: true });
  }
}
