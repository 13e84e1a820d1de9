import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { blocksOf, prove, typeFaults } from "./documents.ts";

let root = "";

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "documents-test-"));
});

afterEach(() => {
  rmSync(root, { recursive: true });
});

function fenced(...blocks: readonly (readonly [info: string, code: string])[]): string {
  return blocks.map(([info, code]) => `Words.\n\n\`\`\`${info}\n${code}\n\`\`\`\n`).join("\n");
}

/** What is wrong with each block that was looked at. */
async function verdicts(
  ...blocks: readonly (readonly [info: string, code: string])[]
): Promise<(string | undefined)[]> {
  return [...(await prove(blocksOf("x.md", fenced(...blocks)), root)).values()];
}

it("finds blocks with their place, language and mark, indented ones too", () => {
  const text =
    "# Title\n\n```sh run\nls\n```\n\n- point\n\n  ```ts\n  a;\n    b;\n  ```\n\n````md\n```sh run\n```\n````\n";
  expect(blocksOf("x.md", text)).toEqual([
    { file: "x.md", line: 3, language: "sh", mark: "run", code: "ls" },
    { file: "x.md", line: 9, language: "ts", mark: "", code: "a;\n  b;" },
    { file: "x.md", line: 14, language: "md", mark: "", code: "```sh run\n```" },
  ]);
});

it("refuses a block without an end", () => {
  expect(() => blocksOf("x.md", "```sh run\nls\n")).toThrow("x.md:1");
});

it("runs the marked blocks in order on one data folder, and no others", async () => {
  const found = await verdicts(
    ["sh run", 'echo one > "$SLUICE_DATA/file"'],
    ["sh", 'echo never > "$SLUICE_DATA/file"'],
    ["sh run", 'cat "$SLUICE_DATA/file"'],
    ["text shown", "one"],
  );
  expect(found).toEqual([undefined, undefined, undefined]);
});

it("reports what a command printed when it fails, also in the middle of a block or a pipe", async () => {
  const found = await verdicts(["sh run", "echo why; false\necho on"], ["sh run", "false | cat"]);
  expect(found[0]).toContain("ended with 1:\nwhy\n");
  expect(found[0]).not.toContain("on\n");
  expect(found[1]).toContain("ended with 1");
});

it("compares what is shown with what was printed, line by line and in order", async () => {
  const found = await verdicts(
    ["sh run", "printf '1 of 7 in 12 ms\\n(ok)\\nend\\n'"],
    ["text shown", "1 of 7 in … ms\n…\nend"],
    ["text shown", "end\n(ok)"],
    ["text shown", "1 of 8 in … ms"],
  );
  expect(found[1]).toBeUndefined();
  expect(found[2]).toContain("was not printed: (ok)");
  expect(found[3]).toContain("was not printed: 1 of 8");
  expect(await verdicts(["text shown", "end"])).toEqual(["shows the output of no block"]);
});

it("serves beside the blocks that follow, and ends the server with SIGTERM", async () => {
  const server = `node -e "
    const server = require('node:http').createServer((_, answer) => answer.end('hello'));
    process.on('SIGTERM', () => server.close(() => console.log('bye')));
    server.listen(0, '127.0.0.1', () => {
      require('node:fs').writeFileSync(process.env.SLUICE_DATA + '/port', String(server.address().port));
      console.log('listening on http://127.0.0.1:' + server.address().port);
    });"`;
  const ask = `node -e "fetch('http://127.0.0.1:' + require('node:fs').readFileSync(process.env.SLUICE_DATA + '/port')).then((answer) => answer.text()).then(console.log)"`;
  const found = await verdicts(["sh serve", `exec ${server}`], ["sh run", ask], ["text shown", "hello"]);
  expect(found).toEqual([undefined, undefined, undefined]);
});

it("reports a server that ends before it says where it is, or by itself", async () => {
  const [early] = await verdicts(["sh serve", "echo no port"]);
  expect(early).toContain("ended before it printed an address:\nno port");
  const [own] = await verdicts(
    ["sh serve", 'echo $$ > "$SLUICE_DATA/pid"; echo listening on http://127.0.0.1:1'],
    ["sh run", 'while kill -0 "$(cat "$SLUICE_DATA/pid")" 2> /dev/null; do :; done'],
  );
  expect(own).toBe("ended by itself:\nlistening on http://127.0.0.1:1\n");
});

it("compares a quote with the region that it names", async () => {
  writeFileSync(join(root, "x.example.ts"), "a;\n// #region one\nb;\nc;\n// #endregion\n");
  const found = await verdicts(
    ["ts quote=x.example.ts#one", "b;\nc;"],
    ["ts quote=x.example.ts#one", "b;"],
    ["ts quote=x.example.ts#two", "b;"],
  );
  expect(found[0]).toBeUndefined();
  expect(found[1]).toContain("is not what x.example.ts has in region one");
  expect(found[2]).toContain("has no region two");
});

it("refuses marks that mean nothing, so that a slip doesn't leave a block out", async () => {
  expect(await verdicts(["sh runs", "ls"], ["ts qoute=x#y", "a;"], ["text show", "a"])).toEqual([
    '"sh runs" means nothing',
    '"ts qoute=x#y" means nothing',
    '"text show" means nothing',
  ]);
});

it("type-checks each TypeScript block as a module of its own", () => {
  const right = 'import { Semaphore } from "sluice";\nconst sem: Semaphore = new Semaphore(1);';
  const wrong = 'import { Semaphore } from "sluice";\nconst sem = new Semaphore("1");';
  const blocks = blocksOf("docs/x.md", fenced(["ts", right], ["ts", right], ["ts fragment", "sem."], ["ts", wrong]));
  const found = typeFaults(blocks);
  expect(found).toHaveLength(1);
  expect(found[0]).toMatch(/^docs\/x\.md\.\d+\.ts\(2,\d+\): error TS2345/);
  expect(typeFaults(blocks.slice(0, 3))).toEqual([]);
});

it("type-checks each line after what its document takes for given, and no other document's lines", () => {
  const given = 'import { Semaphore } from "sluice";\ndeclare const sem: Semaphore;';
  const found = typeFaults([
    ...blocksOf("docs/x.md", fenced(["ts given", given], ["ts line", "sem.close();"], ["ts line", "sem.open();"])),
    ...blocksOf("docs/y.md", fenced(["ts line", "sem.close();"])),
  ]);
  expect(found.map((fault) => fault.replace(/\(.*/, ""))).toEqual(["docs/x.md.16.ts", "docs/y.md.3.ts"]);
});
