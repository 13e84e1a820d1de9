// How a page of docs/reference reads.
import { readFileSync } from "node:fs";
import { basename } from "node:path";
import type { Declaration, Doc, Member } from "./declarations.ts";

/** What one source exports. */
export interface Page {
  readonly name: string;
  readonly source: string;
  /** By where it is imported from. */
  readonly imports: Map<string, readonly string[]>;
  readonly exported: string[];
  readonly declarations: ReadonlyMap<string, readonly Declaration[]>;
  readonly purpose: Doc;
}

/** What the pages know of each other. */
export interface Surroundings {
  /** The page of each exported name. */
  readonly pageOf: ReadonlyMap<string, string>;
  /** What is not exported and may be a part of what is. */
  readonly hidden: ReadonlyMap<string, Declaration>;
  readonly examples: readonly Example[];
}

export interface Example {
  /** What it is called after: of a page, if there is one of that name. */
  readonly name: string;
  readonly code: string;
  readonly prints: string;
  /** Names that it imports. */
  readonly uses: ReadonlySet<string>;
}

export const NOTE = "<!-- Written by `npm run pages -- --write` from the source: change it there. -->";

export function textOf(page: Page, surroundings: Surroundings): string {
  const { exported, source, purpose } = page;
  const declared = exported.flatMap((name) => page.declarations.get(name) ?? []);
  const values = declared.filter(isValue);
  const types = declared.filter((each) => !isValue(each));
  const shown = new Set((values.length > 0 ? values : declared).map(({ name }) => name));
  const keyword = values.length > 0 ? "import" : "import type";
  const imports = [...page.imports].flatMap(([specifier, all]) => {
    const some = all.filter((name) => shown.has(name));
    return some.length === 0 ? [] : [`${keyword} { ${some.join(", ")} } from "${specifier}";`];
  });
  return paragraphs(
    `# ${[...shown].map((name) => `\`${name}\``).join(", ")}`,
    NOTE,
    wordsOf(purpose),
    fence("ts fragment", imports.join("\n")),
    ...[...values, ...types].map((each) => declarationText(each, purpose, surroundings.hidden)),
    exampleText(page.name, values, surroundings),
    seeAlso(page, declared, surroundings.pageOf),
    `Source: [${source}](../../${source})\n`,
  );
}

export function paragraphs(...parts: readonly string[]): string {
  return parts.filter((part) => part !== "").join("\n\n");
}

function isValue({ kind }: Declaration): boolean {
  return kind !== "interface" && kind !== "type";
}

function declarationText(declaration: Declaration, purpose: Doc, hidden: ReadonlyMap<string, Declaration>): string {
  const { name, kind, signature, doc, members } = declaration;
  const inherited = isValue(declaration) ? [] : basesOf(declaration, hidden).flatMap((base) => base.members);
  const all = [...members, ...inherited];
  const isListed = kind === "type" && all.length > 0; // its members say it all
  return paragraphs(
    `## ${name}`,
    isListed ? "" : fence("ts fragment", signature),
    doc.text === purpose.text ? "" : wordsOf(doc, signature),
    ...(kind === "class" ? memberTexts(name, all) : [listOf(all)]),
  );
}

/** Those that need no words stand together. */
function memberTexts(name: string, members: readonly Member[]): string[] {
  const texts: string[] = [];
  let codes: string[] = [];
  for (const [index, { signature, doc }] of members.entries()) {
    codes.push(signature.replace(/^constructor/, `new ${name}`));
    const words = wordsOf(doc, signature);
    const next = members[index + 1];
    if (words === "" && next !== undefined && wordsOf(next.doc) === "") continue;
    texts.push(fence("ts fragment", codes.join("\n")), words);
    codes = [];
  }
  return texts;
}

/** What it is made of and nobody can import: its members are told in its place. */
function basesOf(declaration: Declaration, hidden: ReadonlyMap<string, Declaration>): Declaration[] {
  const head = declaration.signature.replaceAll(/<?\{[^]*\}>?/g, "");
  const found: Declaration[] = [];
  for (const word of declaration.words) {
    const base = hidden.get(word);
    if (base === undefined || word === declaration.name || !new RegExp(String.raw`\b${word}\b`).test(head)) continue;
    found.push(base, ...basesOf(base, hidden));
  }
  return found;
}

function listOf(members: readonly Member[]): string {
  const lines = members.map(({ signature, doc }) => {
    const words = onOneLine(wordsOf(doc, signature));
    const code = signature.replace(/^readonly /, "").replace(/(\?: [^]*) \| undefined$/, "$1");
    return `- \`${onOneLine(code)}\`${words === "" ? "" : `: ${words}`}`;
  });
  return lines.join("\n");
}

/** A function that returns a promise rejects it, whatever is wrong. */
function wordsOf({ text, tags }: Doc, signature = ""): string {
  const verb = /\): Promise<.*>;?$/.test(signature) ? "Rejects with" : "Throws";
  const said = tags.map(([tag, words]) => {
    if (tag === "default") return `Default: ${/^[\w".+-]+$/.test(words) ? `\`${words}\`` : words}.`;
    if (tag === "throws") return `${verb} ${words}.`;
    if (tag === "param") return `\`${words.replace(/ /, "` is ")}.`;
    return `${tag}: ${words}`;
  });
  const told = text.replaceAll(/@default ([\w".+-]+)/g, "Default: `$1`.");
  return [told, ...said].filter((part) => part !== "").join(" ");
}

/** Of this name; or else of none and about this; or else where one is that uses it. */
function exampleText(page: string, values: readonly Declaration[], { examples, pageOf }: Surroundings): string {
  const pages = new Set(pageOf.values());
  const using = examples.filter(({ uses }) => values.some(({ name }) => uses.has(name)));
  const shown = examples.find(({ name }) => name === page) ?? using.find(({ name }) => !pages.has(name));
  if (shown !== undefined)
    return paragraphs("## Example", fence("ts fragment", shown.code), "It prints:", fence("text", shown.prints));
  const links = using.map(({ name }) => `[${name}](${name}.md#example)`);
  return links.length === 0 ? "" : `Used in the example of ${links.join(", ")}.`;
}

export function readExample(file: string): Example {
  const [text = "", printed = ""] = readFileSync(file, "utf8").split("\n// Prints:\n");
  const imported = [...text.matchAll(/^import \{([^}]*)\} from/gm)].flatMap(([, names = ""]) => names.split(","));
  return {
    name: basename(file, ".example.ts"),
    code: text.replaceAll(/^ *\/\/ #(end)?region.*\n/gm, "").trim(),
    prints: printed.replaceAll(/^\/\/ ?/gm, "").trimEnd(),
    uses: new Set(imported.map((name) => name.trim())),
  };
}

function seeAlso({ name }: Page, declared: readonly Declaration[], pageOf: ReadonlyMap<string, string>): string {
  const links = new Set<string>();
  for (const word of declared.flatMap(({ words }) => [...words])) {
    const page = pageOf.get(word);
    if (page !== undefined && page !== name) links.add(`[\`${word}\`](${page}.md)`);
  }
  return links.size === 0 ? "" : `See also: ${[...links].toSorted().join(", ")}`;
}

export function onOneLine(text: string): string {
  return text.replaceAll(/\s*\n\s*/g, " ");
}

function fence(language: string, code: string): string {
  return `\`\`\`${language}\n${code}\n\`\`\``;
}
