import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { call, openStore } from "../storage/store.ts";
import { runProgram } from "./program.ts";

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "program-"));
});

afterEach(() => rmSync(folder, { recursive: true }));

/** The exit code, and what was printed and noted. */
async function program(...args: string[]): Promise<{ code: number; printed: string[]; noted: string }> {
  const printed: string[] = [];
  const noted: string[] = [];
  const terminal = {
    print: (text: string) => void printed.push(text),
    note: (text: string) => void noted.push(text),
    progress: { write: (text: string) => noted.push(text) },
  };
  const code = await runProgram(args, terminal);
  return { code, printed, noted: noted.join("\n") };
}

/** A folder in which these notifications are dead. */
async function dead(...ids: string[]): Promise<string> {
  const data = join(folder, "data");
  mkdirSync(data);
  const store = await openStore(join(data, "dispatcher.sqlite"));
  const event = { id: "1", source: "here", type: "thing", subject: undefined, time: undefined, data: "{}" };
  await call(store, "accept", { capacity: 1, events: [event] });
  const [job] = await store.claim({ queue: "expand", max: 1, leaseMs: 1_000, worker: "test" });
  if (job === undefined) throw new Error("the event has no job");
  const planned = ids.map((id) => {
    return { id, user: `user of ${id}`, channel: "email", rule: "all", template: "plain", overLimit: "defer" } as const;
  });
  await call(store, "expand", { run: 1, claim: job, event: 1, planned });
  for (const notification of ids.keys())
    await call(store, "bury", { run: 1, notification: notification + 1, round: 0, reason: "550 no such mailbox" });
  await store.close();
  return data;
}

it("ends with 2 and says what is wrong when it is asked in a wrong way", async () => {
  const wrong: [string[], RegExp][] = [
    [["--jso"], /unknown option '--jso'/],
    [["--json"], /--json needs --once/],
    [["frobnicate"], /too many arguments|unknown command/],
    [["--port", "65536"], /must be a whole number from 0 to 65535/],
    [["--log-level", "loud"], /Allowed choices are trace/],
    [["--config", "/does/not/exist"], /can't read the configuration .*: there is no such file/],
    [["dead", "redrive"], /needs ids, --user, --channel or --rule to choose by, or --all/],
    [["dead", "list", "--limit", "0"], /must be a whole number from 1/],
    [["notification"], /missing required argument 'id'/],
  ];
  for (const [args, why] of wrong) {
    const { code, printed, noted } = await program(...args);
    expect({ args, code, printed }).toEqual({ args, code: 2, printed: [] });
    expect(noted).toMatch(why);
  }
});

it("ends with 0 after its help, which names every command, option and exit code", async () => {
  const { code, printed } = await program("--help");
  expect(code).toBe(0);
  for (const word of ["run", "check-config", "notification", "dead", "Exit codes"])
    expect(printed.join()).toContain(word);
  const help = (await program("run", "--help")).printed.join();
  for (const option of ["data", "config", "events", "once", "json", "chaos", "host", "port", "log-level"])
    expect(help).toContain(`--${option}`);
  expect((await program("dead", "redrive", "--help")).printed.join()).toContain("--yes");
});

it("check-config tells every fault of a file, and 2, or that it is good", async () => {
  const file = join(folder, "config.yaml");
  writeFileSync(file, "users: []\nrulez: []\n");
  const bad = await program("check-config", file);
  expect(bad.code).toBe(2);
  expect(bad.printed.length).toBeGreaterThan(2);
  expect(bad.printed.join("\n")).toMatch(/config\.yaml:2: rulez is not known/);
  expect(bad.noted).toMatch(/faults in /);
  expect(await program("check-config", "apps/dispatcher/sample/config.yaml")).toMatchObject({ code: 0 });
  expect((await program("check-config", join(folder, "none"))).code).toBe(2);
  const { code, noted } = await program("--config", file);
  expect(code).toBe(2);
  expect(noted).toMatch(/config\.yaml:2: rulez is not known/);
});

it("notification tells a history, to people and as JSON", async () => {
  const data = await dead("ntf_a");
  const { code, printed } = await program("notification", "ntf_a", "--data", data);
  expect(code).toBe(0);
  expect(printed.join()).toMatch(/^ntf_a {2}dead: 550 no such mailbox\n(.*\n)+.* dead {7}550 no such mailbox$/);
  const [json = ""] = (await program("notification", "ntf_a", "--data", data, "--json")).printed;
  expect(JSON.parse(json)).toMatchObject({ id: "ntf_a", status: "dead", event: { id: "1", source: "here" } });
  expect(await program("notification", "ntf_b", "--data", data)).toMatchObject({ code: 1, printed: [] });
});

it("has nothing to read where no dispatcher has been, and makes nothing there", async () => {
  const nowhere = join(folder, "nowhere");
  for (const args of [
    ["notification", "x"],
    ["dead", "list"],
    ["dead", "redrive", "--all", "--yes"],
  ]) {
    const { code, noted } = await program(...args, "--data", nowhere);
    expect(code).toBe(1);
    expect(noted).toContain(`there is no dispatcher's data in ${nowhere}`);
  }
});

it("dead list shows those that a filter names, up to a limit", async () => {
  const data = await dead("ntf_a", "ntf_b", "ntf_c");
  const all = await program("dead", "list", "--data", data);
  expect(all.printed.join("\n").split("\n")).toHaveLength(3);
  expect(all.printed.join()).toMatch(/^ntf_a .* user of ntf_a over email by all: 550 no such mailbox/);
  expect(all.noted).toBe("3 dead");
  const two = await program("dead", "list", "--data", data, "--limit", "2", "--json");
  expect(two.printed.map((line) => (JSON.parse(line) as { id: string }).id)).toEqual(["ntf_a", "ntf_b"]);
  expect((await program("dead", "list", "ntf_c", "--data", data)).printed.join()).toContain("ntf_c");
  expect((await program("dead", "list", "--user", "nobody", "--data", data)).printed).toEqual([]);
});

it("dead redrive shows what it would do, and does it with --yes", async () => {
  const data = await dead("ntf_a", "ntf_b");
  const preview = await program("dead", "redrive", "--user", "user of ntf_b", "--data", data);
  expect(preview.printed.join()).toContain("ntf_b");
  expect(preview.noted).toContain("nothing was changed");
  expect((await program("dead", "list", "--data", data)).noted).toBe("2 dead");
  const done = await program("dead", "redrive", "--user", "user of ntf_b", "--data", data, "--yes", "--json");
  expect(done).toMatchObject({ code: 0, printed: ['{"redriven":1}'] });
  expect((await program("dead", "list", "--data", data)).noted).toBe("1 dead");
  expect((await program("notification", "ntf_b", "--data", data)).printed.join()).toMatch(/ {2}redriven$/);
  expect((await program("dead", "redrive", "ntf_a", "--data", data, "--yes")).printed).toEqual(["1 redriven"]);
});
