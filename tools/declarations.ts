// What the built declarations of a package say: what each entry point exports, from which file, and with which words.
import { readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { parseSync } from "vite";

/** A comment as its author wrote it, without the stars. */
export interface Doc {
  readonly text: string;
  /** `default`, `throws`, `param`, … with what follows, in order. */
  readonly tags: readonly (readonly [tag: string, text: string])[];
}

export interface Member {
  readonly signature: string;
  readonly doc: Doc;
}

export interface Declaration {
  readonly name: string;
  readonly kind: "class" | "function" | "interface" | "type" | "value";
  /** Of a class or an interface: up to its brace. Else all of it. */
  readonly signature: string;
  readonly doc: Doc;
  /** Of a class, an interface, or the object type that a type is made of; not what only subclasses see. */
  readonly members: readonly Member[];
  /** Words in it that may be names of other declarations. */
  readonly words: ReadonlySet<string>;
}

interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [key: string]: unknown;
}

const KINDS: Readonly<Record<string, Declaration["kind"]>> = {
  ClassDeclaration: "class",
  TSDeclareFunction: "function",
  FunctionDeclaration: "function",
  TSInterfaceDeclaration: "interface",
  TSTypeAliasDeclaration: "type",
  VariableDeclaration: "value",
};

/** Names that the entry point exports, by the file that declares them, in the order of the entry. */
export function exportsOf(entry: string): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const node of parse(entry).body) {
    const { source, specifiers } = node as {
      source?: { value: string };
      specifiers?: { exported: { name: string } }[];
    };
    if (node.type !== "ExportNamedDeclaration" || source === undefined || source === null) continue;
    const file = normalize(join(dirname(entry), source.value.replace(/\.[jt]s$/, ".d.ts")));
    found.set(file, [...(found.get(file) ?? []), ...(specifiers ?? []).map(({ exported }) => exported.name)]);
  }
  return found;
}

/** By name; overloads of a function are several of one name. */
export function readDeclarations(file: string): Map<string, Declaration[]> {
  const { body, comments, text } = parse(file);
  const docBefore = (start: number, from = 0): Doc => {
    const last = comments.findLast((each) => each.end <= start && each.start >= from);
    return parseDoc(last !== undefined && text.slice(last.end, start).trim() === "" ? last.value : "");
  };
  const declarations = new Map<string, Declaration[]>();
  for (const node of body) {
    const declaration = node["declaration"] as Node | null | undefined;
    const kind = KINDS[declaration?.type ?? ""];
    if (declaration === null || declaration === undefined || kind === undefined) continue;
    const { start, end } = node;
    const whole = text.slice(start, end);
    const members = membersOf(declaration).map((member) => ({
      signature: unindented(text.slice(member.start, member.end)),
      doc: docBefore(member.start, start),
    }));
    const block = (declaration["body"] as Node | undefined)?.start;
    const isBlock = kind === "class" || kind === "interface";
    const head = isBlock && block !== undefined ? text.slice(start, block) : whole;
    const name = nameOf(declaration);
    const signature = withoutDocs(head)
      .replace(/^export (declare )?/, "")
      .trim();
    const words = new Set(withoutDocs(whole).match(/\b[A-Z]\w*/g));
    const known = declarations.get(name) ?? [];
    declarations.set(name, [...known, { name, kind, signature, doc: docBefore(start), members, words }]);
  }
  return declarations;
}

/**
 * The comment at the top of a source, which is about all of it. The compiler drops it where it drops the first import. One
 * that stands right before the first of several things is about that alone.
 */
export function readPurpose(source: string): Doc {
  const { body, comments, text } = parse(source);
  const [first] = comments;
  if (first === undefined || text.slice(0, first.start).trim() !== "") return parseDoc("");
  const [next] = body;
  const isOfNext = next?.type !== "ImportDeclaration" && text.slice(first.end, next?.start).trim() === "";
  const declared = body.filter((node) => node["declaration"] !== undefined && node["declaration"] !== null);
  return parseDoc(isOfNext && declared.length > 1 ? "" : first.value);
}

function parse(file: string): {
  readonly body: readonly Node[];
  readonly comments: readonly { readonly value: string; readonly start: number; readonly end: number }[];
  readonly text: string;
} {
  const text = readFileSync(file, "utf8");
  const { program, comments, errors } = parseSync(file, text);
  const [error] = errors;
  if (error !== undefined) throw new Error(`${file}: ${error.message}`);
  const docs = comments.filter(({ type, value }) => type === "Block" && value.startsWith("*"));
  return { body: program.body as unknown as Node[], comments: docs, text };
}

function nameOf(declaration: Node): string {
  const [first] = (declaration["declarations"] as Node[] | undefined) ?? [declaration];
  return ((first?.["id"] as Node | undefined)?.["name"] as string | undefined) ?? "";
}

function membersOf(declaration: Node): readonly Node[] {
  if (declaration.type === "TSTypeAliasDeclaration") return literalMembers(declaration["typeAnnotation"]);
  const block = declaration["body"] as { readonly body?: readonly Node[] } | undefined;
  if (!Array.isArray(block?.body)) return [];
  return (block.body as readonly Node[]).filter(
    (member) =>
      (member["key"] as Node | undefined)?.type !== "PrivateIdentifier" && member["accessibility"] !== "protected",
  );
}

/** Of the object types in `Readonly<{ … }>` and `Base & { … }`, but not of those within their members. */
function literalMembers(node: unknown): readonly Node[] {
  const { type, members, types, typeArguments } = node as Node & {
    readonly members?: readonly Node[];
    readonly types?: readonly Node[];
    readonly typeArguments?: { readonly params: readonly Node[] } | null;
  };
  if (type === "TSTypeLiteral") return members ?? [];
  if (type === "TSIntersectionType") return (types ?? []).flatMap(literalMembers);
  return type === "TSTypeReference" ? (typeArguments?.params ?? []).flatMap(literalMembers) : [];
}

function withoutDocs(text: string): string {
  return text.replaceAll(/\/\*\*[^]*?\*\/\s*/g, "");
}

function unindented(text: string): string {
  return withoutDocs(text)
    .replaceAll(/\n {4}/g, "\n")
    .replace(/;$/, "");
}

export function parseDoc(comment: string): Doc {
  const lines = comment.split("\n").map((line) => line.replace(/^\s*\*+ ?/, "").trimEnd());
  const [text = "", ...rest] = lines.join("\n").split(/(?:^|\s)(?=@[a-z]+\b)/);
  const tags = rest.map((tag) => {
    const [, name = "", said = ""] = /^@([a-z]+)\s*([^]*)$/.exec(tag) ?? [];
    return [name, said.trim()] as const;
  });
  return { text: text.trim(), tags };
}
