// Proves the fenced blocks of the documents. The word after the language says how:
//   sh run        bash runs it from the repository; it must end with 0 within LIMIT_MS
//   sh serve      bash runs it beside the blocks that follow; it must print `listening on http://…`, and end with 0 on SIGTERM
//   text shown    lines that the block before has printed, in this order; … stands for anything
//   ts quote=FILE#NAME   is what stands between `// #region NAME` and `// #endregion` in FILE
//   ts            is type-checked as a module of its own
//   ts given      stands before each `ts line` of its document, which is type-checked so, as a module of its own
//   ts fragment, and every other block: not checked
// And fails where docs/reference is not what the sources say (tools/pages.ts).
// `SLUICE_DATA` is a temporary folder for all blocks of a document, and they run in order.
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { appendFileSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join, resolve } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { declare, stalePages } from "./pages.ts";

export interface Block {
  readonly file: string;
  /** Of the opening fence. */
  readonly line: number;
  readonly language: string;
  readonly mark: string;
  readonly code: string;
}

interface Running {
  readonly block: Block;
  readonly child: ChildProcess;
  readonly output: () => string;
}

const DOCUMENTS = ["*.md", "docs/**/*.md", "packages/*/README.md"];
const LIMIT_MS = 5 * 60_000;
const ADDRESS = /listening on http:\/\/[^\s/]+/;
const MARKS: Readonly<Record<string, RegExp>> = {
  sh: /^(run|serve|)$/,
  text: /^(shown|)$/,
  ts: /^(quote=\S+#\S+|fragment|given|line|)$/,
};

export function blocksOf(file: string, text: string): Block[] {
  const blocks: Block[] = [];
  const lines = text.split("\n");
  for (let at = 0; at < lines.length; at += 1) {
    const [, indent, fence, language, mark] = /^( *)(`{3,})(\S*) *(.*)$/.exec(lines[at] ?? "") ?? [];
    if (indent === undefined || fence === undefined) continue;
    const end = lines.findIndex((line, index) => index > at && line.trim() === fence);
    if (end === -1) throw new Error(`${file}:${at + 1}: the block has no end`);
    const code = lines.slice(at + 1, end).map((line) => line.slice(indent.length));
    blocks.push({ file, line: at + 1, language: language ?? "", mark: mark?.trim() ?? "", code: code.join("\n") });
    at = end;
  }
  return blocks;
}

/** Proves the blocks of one document, in order: what is wrong with each, or undefined. */
export async function prove(blocks: readonly Block[], root = "."): Promise<Map<Block, string | undefined>> {
  const data = mkdtempSync(join(tmpdir(), "documents-"));
  const verdicts = new Map<Block, string | undefined>();
  const servers: Running[] = [];
  let last: (() => string) | undefined;
  try {
    for (const block of blocks) {
      const { language, mark, code } = block;
      const allowed = MARKS[language];
      if (allowed !== undefined && !allowed.test(mark)) verdicts.set(block, `"${language} ${mark}" means nothing`);
      else if (language === "sh" && mark !== "") {
        const running = startShell(block, root, data);
        last = running.output;
        if (mark === "serve") servers.push(running);
        verdicts.set(block, await (mark === "serve" ? hasAddress(running) : hasEnded(running)));
      } else if (language === "text" && mark === "shown") verdicts.set(block, missing(code, last?.()));
      else if (mark.startsWith("quote=")) verdicts.set(block, misquoted(code, mark.slice("quote=".length), root));
    }
  } finally {
    for (const server of servers) {
      const why = await stop(server);
      if (why !== undefined) verdicts.set(server.block, verdicts.get(server.block) ?? why);
    }
    rmSync(data, { recursive: true, force: true });
  }
  return verdicts;
}

function startShell(block: Block, root: string, data: string): Running {
  const PATH = [resolve("node_modules/.bin"), process.env["PATH"]].join(delimiter);
  const child = spawn("bash", ["-euo", "pipefail", "-c", block.code], {
    cwd: root,
    env: { ...process.env, PATH, SLUICE_DATA: data, NO_COLOR: "1" },
    stdio: ["ignore", "pipe", "pipe"],
    detached: true, // a group of its own, so that what it started ends with it
  });
  let text = "";
  const keep = (chunk: Buffer): void => {
    text += chunk.toString();
  };
  child.stdout.on("data", keep);
  child.stderr.on("data", keep);
  return { block, child, output: () => stripVTControlCharacters(text) };
}

async function hasEnded({ child, output }: Running): Promise<string | undefined> {
  const late = setTimeout(() => kill(child, "SIGKILL"), LIMIT_MS);
  const [code, signal] = (await once(child, "close")) as [number | null, NodeJS.Signals | null];
  clearTimeout(late);
  return code === 0 ? undefined : `ended with ${code ?? signal}:\n${output()}`;
}

/** Resolves when the server says where it is to be found. */
async function hasAddress({ child, output }: Running): Promise<string | undefined> {
  const ended = once(child, "close").then(() => "ended");
  const late = setTimeout(() => kill(child, "SIGKILL"), LIMIT_MS);
  let state = "";
  while (!ADDRESS.test(output()) && state !== "ended") {
    const printed = new Promise<string>((printedMore) => {
      child.stdout?.once("data", () => printedMore(""));
      child.stderr?.once("data", () => printedMore(""));
    });
    state = await Promise.race([ended, printed]);
  }
  clearTimeout(late);
  return state === "ended" ? `ended before it printed an address:\n${output()}` : undefined;
}

async function stop(running: Running): Promise<string | undefined> {
  const { child } = running;
  if (child.exitCode !== null || child.signalCode !== null) return `ended by itself:\n${running.output()}`;
  const ended = hasEnded(running);
  kill(child, "SIGTERM");
  return ended;
}

function kill(child: ChildProcess, signal: NodeJS.Signals): void {
  try {
    if (child.pid !== undefined) process.kill(-child.pid, signal);
  } catch {
    // it has ended already
  }
}

/** The first line of `shown` that `output` doesn't have where it should. */
function missing(shown: string, output: string | undefined): string | undefined {
  if (output === undefined) return "shows the output of no block";
  const lines = output.split("\n").map((line) => line.trimEnd());
  let from = 0;
  for (const line of shown.split("\n").filter((each) => each.trim() !== "" && each.trim() !== "…")) {
    const parts = line.trimEnd().split("…");
    const literal = parts.map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`));
    const pattern = new RegExp(`^${literal.join(".*")}$`);
    const at = lines.findIndex((each, index) => index >= from && pattern.test(each));
    if (at === -1) return `was not printed: ${line}\n${output}`;
    from = at + 1;
  }
  return undefined;
}

function misquoted(code: string, source: string, root: string): string | undefined {
  const [file = "", name = ""] = source.split("#");
  const lines = readFileSync(join(root, file), "utf8").split("\n");
  const from = lines.findIndex((line) => line.trim() === `// #region ${name}`);
  const to = lines.findIndex((line, index) => index > from && line.trim() === "// #endregion");
  if (from === -1 || to === -1) return `${file} has no region ${name}`;
  return lines.slice(from + 1, to).join("\n") === code ? undefined : `is not what ${file} has in region ${name}`;
}

/** What the compiler says about blocks of TypeScript, each a module of its own. */
export function typeFaults(blocks: readonly Block[]): string[] {
  const typed = blocks.filter(({ language }) => language === "ts");
  const given = new Map(typed.filter(({ mark }) => mark === "given").map(({ file, code }) => [file, `${code}\n`]));
  const wanted = typed.filter(({ mark }) => mark === "" || mark === "line");
  if (wanted.length === 0) return [];
  // Below the repository, so that its packages are found.
  mkdirSync("node_modules/.cache", { recursive: true });
  const folder = mkdtempSync("node_modules/.cache/documents-");
  try {
    const names = wanted.map(({ file, line }) => `${file.replaceAll("/", "__")}.${line}.ts`);
    for (const [index, { code, mark, file }] of wanted.entries()) {
      const before = mark === "line" ? (given.get(file) ?? "") : "";
      writeFileSync(join(folder, names[index] ?? ""), `${before}${code}\n`);
    }
    const lib = ["es2024", "esnext.disposable", "dom"]; // the sources of the packages are compiled along
    const compilerOptions = { noEmit: true, composite: false, noUnusedLocals: false, isolatedDeclarations: false, lib };
    const base = { extends: resolve("tsconfig.base.json"), files: names };
    writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ ...base, compilerOptions }));
    execFileSync(resolve("node_modules/.bin/tsc"), ["-p", folder, "--pretty", "false"], { encoding: "utf8" });
    return [];
  } catch (error) {
    const { stdout } = error as { stdout?: string };
    if (stdout === undefined) throw error;
    return stdout.trim().replaceAll(`${folder}/`, "").replaceAll("__", "/").split("\n");
  } finally {
    rmSync(folder, { recursive: true });
  }
}

if (import.meta.main) {
  const files = globSync(DOCUMENTS, { exclude: ["docs/api/**"] }).toSorted(); // what a tool wrote and checks by itself
  const documents = files.map((file) => blocksOf(file, readFileSync(file, "utf8")));
  const count = { passed: 0, failed: 0, skipped: 0 };
  const report = (title: string, why: string | undefined): void => {
    count[why === undefined ? "passed" : "failed"] += 1;
    console.log(why === undefined ? `ok ${title}` : `FAILED ${title}: ${why}`);
  };
  for (const blocks of documents) {
    for (const [{ file, line }, why] of await prove(blocks)) report(`${file}:${line}`, why);
  }
  const types = typeFaults(documents.flat());
  report("types of the TypeScript blocks", types.length === 0 ? undefined : types.join("\n"));
  declare();
  const stale = stalePages();
  report("docs/reference", stale.length === 0 ? undefined : `${stale.join(", ")}: npm run pages -- --write`);
  const tally = process.env["TALLY"];
  if (tally !== undefined) appendFileSync(tally, `${JSON.stringify(count)}\n`);
  process.exitCode = count.failed === 0 ? 0 : 1;
}
