// npm run pages [-- --write]: one page in docs/reference for each source of the core that exports something, made of its
// doc comments and its example, which the tests run. Without `--write` it fails if a page is not what it should be.
import { spawnSync } from "node:child_process";
import { existsSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join, relative } from "node:path";
import { parseArgs } from "node:util";
import { type Declaration, exportsOf, readDeclarations, readPurpose } from "./declarations.ts";
import { entriesOf } from "./entries.ts";
import { NOTE, onOneLine, type Page, paragraphs, readExample, textOf } from "./page-text.ts";

const FOLDER = "docs/reference";
const PACKAGE = "packages/sluice";
const INDEX = "README.md";

/** Texts by the name of the file, made from what was built under `root`. */
export function pagesOf(root = "."): Map<string, string> {
  const pages = readPages(root);
  const pageOf = new Map(pages.flatMap(({ name, exported }) => exported.map((each) => [each, name] as const)));
  const examples = globSync(`${PACKAGE}/src/**/*.example.ts`, { cwd: root }).toSorted();
  const surroundings = {
    pageOf,
    hidden: hiddenBehind(pageOf, root),
    examples: examples.map((file) => readExample(join(root, file))),
  };
  const texts = new Map<string, string>();
  for (const page of pages) {
    if (texts.has(`${page.name}.md`)) throw new Error(`two sources are called ${page.name}`);
    texts.set(`${page.name}.md`, textOf(page, surroundings));
  }
  return texts.set(INDEX, indexOf(pages));
}

function readPages(root: string): Page[] {
  const pages = new Map<string, Page>();
  for (const { specifier, types, folder } of entriesOf(root)) {
    if (folder !== PACKAGE) continue;
    for (const [file, exported] of exportsOf(join(root, types))) {
      const page = pages.get(file) ?? readPage(root, file);
      page.imports.set(specifier, exported);
      page.exported.push(...exported.filter((name) => !page.exported.includes(name)));
      pages.set(file, page);
    }
  }
  return [...pages.values()];
}

function readPage(root: string, file: string): Page {
  const source = relative(root, file)
    .replace("/dist/", "/src/")
    .replace(/\.d\.ts$/, ".ts");
  const purpose = readPurpose(join(root, source));
  const name = basename(source, ".ts");
  return { name, source, imports: new Map(), exported: [], declarations: readDeclarations(file), purpose };
}

/** What the package declares and doesn't export. */
function hiddenBehind(exported: ReadonlyMap<string, string>, root: string): Map<string, Declaration> {
  const hidden = new Map<string, Declaration>();
  for (const file of globSync(`${PACKAGE}/dist/**/*.d.ts`, { cwd: root }).toSorted()) {
    for (const [name, [first]] of readDeclarations(join(root, file))) {
      if (first !== undefined && !exported.has(name)) hidden.set(name, first);
    }
  }
  return hidden;
}

function indexOf(pages: readonly Page[]): string {
  const topics = new Map<string, string[]>();
  for (const { name, source, exported, purpose } of pages) {
    const [folder = ""] = dirname(relative(`${PACKAGE}/src`, source)).split("/");
    const topic = folder === "." || folder === "internal" ? "in common" : folder;
    const [first = ""] = onOneLine(purpose.text).split(/(?<=\.)\s/);
    const row = `- [${exported.map((each) => `\`${each}\``).join(", ")}](${name}.md)${first === "" ? "" : `: ${first}`}`;
    topics.set(topic, [...(topics.get(topic) ?? []), row]);
  }
  const parts = [...topics].map(([topic, rows]) => paragraphs(`## ${topic}`, rows.join("\n")));
  return `${paragraphs("# Reference", NOTE, "One page for each source, as its comments tell it.", ...parts)}\n`;
}

/** Files in which the folder is not what it should be. */
export function stalePages(root = "."): string[] {
  const pages = pagesOf(root);
  const files = globSync(`${FOLDER}/*.md`, { cwd: root }).map((file) => basename(file));
  const stale = [...pages].filter(([file, text]) => {
    const path = join(root, FOLDER, file);
    return !existsSync(path) || readFileSync(path, "utf8") !== text;
  });
  return [...stale.map(([file]) => file), ...files.filter((file) => !pages.has(file))].toSorted();
}

/** Brings the declarations up to date, that the pages are made of. */
export function declare(): void {
  const { status } = spawnSync("tsc", ["-b", PACKAGE], { stdio: "inherit" });
  if (status !== 0) process.exit(status ?? 1);
}

function write(): void {
  const pages = pagesOf();
  mkdirSync(FOLDER, { recursive: true });
  for (const file of globSync(`${FOLDER}/*.md`)) if (!pages.has(basename(file))) rmSync(file);
  for (const [file, text] of pages) writeFileSync(join(FOLDER, file), text);
}

if (import.meta.main) {
  const { values } = parseArgs({ options: { write: { type: "boolean", default: false } } });
  declare();
  if (values.write) write();
  const stale = stalePages();
  for (const file of stale) console.error(`${FOLDER}/${file} is stale: npm run pages -- --write`);
  process.exitCode = stale.length === 0 ? 0 : 1;
}
