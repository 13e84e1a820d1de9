import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { channelForms } from "../channels/forms.ts";
import { describeFault } from "./faults.ts";
import { checkConfigFile, loadConfig } from "./load.ts";

const forms = [...channelForms.values()];
const GOOD = `
users:
  - { id: ada, email: ada@example.com }
rules:
  - name: all
    to: { users: [ada] }
    channels: [email]
    template: plain
templates:
  plain:
    email: { subject: "{{ event.type }}", text: "" }
`;

let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "config-"));
});

afterAll(() => rm(folder, { recursive: true }));

async function file(text: string, name = "config.yaml"): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, text);
  return path;
}

async function faultsOf(text: string): Promise<string[]> {
  return (await checkConfigFile(await file(text), forms)).map((fault) => describeFault(fault, "config.yaml"));
}

it("reads YAML and JSON alike", async () => {
  const fromYaml = await loadConfig(await file(GOOD), forms);
  const json = JSON.stringify({ ...fromYaml, limits: {}, providers: {}, intake: {} }, null, "\t");
  expect(await loadConfig(await file(json, "config.json"), forms)).toEqual(fromYaml);
  expect(await faultsOf(GOOD)).toEqual([]);
});

it("names file, line, path, rule and value of each fault", async () => {
  const text = `${GOOD.replace("[email]", "[email, fax]")}limits:\n  retryBaseMs: 5\n  retryMaxMs: 4\n`;
  expect(await faultsOf(text)).toEqual([
    'config.yaml:7: rules[0].channels[1] must be a channel (email, webhook), got "fax"',
    "config.yaml:13: limits.retryBaseMs must be <= retryMaxMs (4), got 5",
  ]);
  await expect(loadConfig(await file(text), forms)).rejects.toMatchObject({
    code: "CONFIG_INVALID",
    file: join(folder, "config.yaml"),
    faults: [{ line: 7 }, { line: 13, path: ["limits", "retryBaseMs"] }],
  });
});

it("gives what is missing the line of what it is missing in", async () => {
  expect(await faultsOf(GOOD.replace("    template: plain\n", ""))).toEqual([
    "config.yaml:5: rules[0].template is missing",
  ]);
});

it("refuses what YAML can't mean, and keys that are given twice", async () => {
  expect(await faultsOf(`${GOOD}users: []\n`)).toEqual(["config.yaml:12: is not YAML: Map keys must be unique"]);
  expect((await faultsOf("users: [1\nrules"))[0]).toMatch(/^config\.yaml:\d+: is not YAML: /);
  expect((await faultsOf("users: !!js/function x"))[0]).toMatch(/^config\.yaml:1: is not YAML: Unresolved tag/);
  expect(await faultsOf("")).toEqual(["config.yaml: must be a mapping, got null"]);
});

it("refuses aliases that would unfold without measure", async () => {
  const levels = Array.from(
    { length: 9 },
    (_, i) => `${"abcdefghij"[i + 1]}: &${"abcdefghij"[i + 1]} [${`*${"abcdefghij"[i]}, `.repeat(9)}]`,
  );
  const [fault] = await faultsOf(["a: &a [x, x, x]", ...levels].join("\n"));
  expect(fault).toMatch(/^config\.yaml: is not YAML: .*alias/i);
});

it("says which file could not be read", async () => {
  const missing = join(folder, "missing.yaml");
  await expect(loadConfig(missing, forms)).rejects.toMatchObject({ code: "ENOENT", path: missing });
  await expect(checkConfigFile(missing, forms)).rejects.toMatchObject({ code: "ENOENT" });
});
