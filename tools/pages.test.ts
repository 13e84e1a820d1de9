import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { pagesOf, stalePages } from "./pages.ts";

let root = "";

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "pages-test-"));
  put("packages/sluice/package.json", {
    name: "sluice",
    exports: {
      ".": { types: "./dist/index.d.ts" },
      "./internal": { types: "./dist/internal/index.d.ts" },
      "./observe": { types: "./dist/observe/index.d.ts" },
    },
  });
  put("packages/sluice/dist/index.d.ts", [
    'export { Gate, type GateOptions } from "./sync/gate.ts";',
    'export type { Wait } from "./policy.ts";',
  ]);
  put("packages/sluice/dist/observe/index.d.ts", ['export { type Wait } from "../policy.ts";']);
  put("packages/sluice/dist/sync/gate.d.ts", [
    'import type { Hidden } from "./line.ts";',
    'import type { Wait } from "../policy.ts";',
    "export interface GateOptions extends Hidden {",
    "    /** How wide. @default 4 */",
    "    readonly width?: number | undefined;",
    "}",
    "/** Lets all through. */",
    "export declare class Gate {",
    "    #private;",
    "    readonly name: string;",
    "    get open(): boolean;",
    "    protected onOpen(): void;",
    "    /** Waits.",
    "     * @throws RangeError if not",
    "     */",
    "    wait(options?: Wait): Promise<void>;",
    "    constructor(options?: GateOptions);",
    "}",
  ]);
  put("packages/sluice/dist/sync/line.d.ts", [
    "export interface Hidden {",
    "    /** How long. */",
    "    readonly length?: number;",
    "}",
  ]);
  put("packages/sluice/dist/policy.d.ts", ["export type Wait = Readonly<{", "    ms: number;", "}>;"]);
  put("packages/sluice/src/sync/gate.ts", [
    "/** A gate. It opens",
    " * and closes. */",
    'import { x } from "./x.ts";',
    "export class Gate {}",
  ]);
  put("packages/sluice/src/policy.ts", ["/** Of a wait. */", "export type Wait = 1;", "export type Other = 2;"]);
  put("packages/sluice/src/sync/gate.example.ts", [
    "// A gate.",
    "console.log(1);",
    "",
    "// Prints:",
    "// 1",
    "// and 2",
  ]);
});

afterEach(() => {
  rmSync(root, { recursive: true });
});

function put(file: string, content: object | readonly string[]): void {
  mkdirSync(dirname(join(root, file)), { recursive: true });
  const text = Array.isArray(content) ? `${content.join("\n")}\n` : JSON.stringify(content);
  writeFileSync(join(root, file), text);
}

it("tells what a source exports in its words, with its example and what it prints", () => {
  expect(pagesOf(root).get("gate.md")?.split("\n\n").slice(2)).toEqual([
    "A gate. It opens\nand closes.",
    '```ts fragment\nimport { Gate } from "sluice";\n```',
    "## Gate",
    "```ts fragment\nclass Gate\n```",
    "Lets all through.",
    "```ts fragment\nreadonly name: string\nget open(): boolean\n```",
    "```ts fragment\nwait(options?: Wait): Promise<void>\n```",
    "Waits. Rejects with RangeError if not.",
    "```ts fragment\nnew Gate(options?: GateOptions)\n```",
    "## GateOptions",
    "```ts fragment\ninterface GateOptions extends Hidden\n```",
    "- `width?: number`: How wide. Default: `4`.\n- `length?: number`: How long.",
    "## Example",
    "```ts fragment\n// A gate.\nconsole.log(1);\n```",
    "It prints:",
    "```text\n1\nand 2\n```",
    "See also: [`Wait`](policy.md)",
    "Source: [packages/sluice/src/sync/gate.ts](../../packages/sluice/src/sync/gate.ts)\n",
  ]);
});

it("shows an example of no source's name where what it uses has none, and says where else one is", () => {
  put("packages/sluice/dist/index.d.ts", [
    'export { Gate } from "./sync/gate.ts";',
    'export { door } from "./sync/door.ts";',
    'export { wall } from "./sync/wall.ts";',
  ]);
  for (const name of ["door", "wall"]) {
    put(`packages/sluice/dist/sync/${name}.d.ts`, [`export declare function ${name}(): void;`]);
    put(`packages/sluice/src/sync/${name}.ts`, [`export function ${name}(): void {}`]);
  }
  put("packages/sluice/src/sync/house.example.ts", [
    'import { door } from "sluice";',
    "door();",
    "",
    "// Prints:",
    "// 3",
  ]);
  put("packages/sluice/src/sync/gate.example.ts", ['import { Gate, wall } from "sluice";', "", "// Prints:", "// 4"]);
  expect(pagesOf(root).get("door.md")).toContain("It prints:\n\n```text\n3\n```");
  expect(pagesOf(root).get("wall.md")).toContain("Used in the example of [gate](gate.md#example).");
});

it("takes the comment on the first of several things for that thing's, and names each place to import from", () => {
  expect(pagesOf(root).get("policy.md")?.split("\n\n").slice(2, -1)).toEqual([
    '```ts fragment\nimport type { Wait } from "sluice";\nimport type { Wait } from "sluice/observe";\n```',
    "## Wait",
    "- `ms: number`",
  ]);
});

it("lists the pages by topic, with the first sentence of each", () => {
  const index = pagesOf(root).get("README.md");
  expect(index).toContain("## sync\n\n- [`Gate`, `GateOptions`](gate.md): A gate.\n");
  expect(index).toContain("## in common\n\n- [`Wait`](policy.md)\n");
});

it("finds pages that are missing, out of date or of nothing", () => {
  expect(stalePages(root)).toEqual(["README.md", "gate.md", "policy.md"]);
  for (const [file, text] of pagesOf(root)) put(`docs/reference/${file}`, [text.trimEnd()]);
  expect(stalePages(root)).toEqual([]);
  put("docs/reference/gone.md", ["# Gone"]);
  put("docs/reference/gate.md", [`${readFileSync(join(root, "docs/reference/gate.md"), "utf8")} more`]);
  expect(stalePages(root)).toEqual(["gate.md", "gone.md"]);
});

it("refuses two sources of one name, whose pages would be one", () => {
  put("packages/sluice/dist/index.d.ts", [
    'export { Gate } from "./sync/gate.ts";',
    'export { Hidden } from "./flow/gate.ts";',
  ]);
  put("packages/sluice/dist/flow/gate.d.ts", ["export interface Hidden {", "}"]);
  put("packages/sluice/src/flow/gate.ts", ["export interface Hidden {}"]);
  expect(() => pagesOf(root)).toThrow("two sources are called gate");
});
