import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Reader } from "../storage/reader.ts";

const MAIN = fileURLToPath(new URL("../main.ts", import.meta.url));
const SECRET = `whsec_${Buffer.alloc(24, 1).toString("base64")}`;

let folder: string;
const cleanups: (() => unknown)[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "run-"));
});

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
  rmSync(folder, { recursive: true });
});

/** The program in a process of its own, and what it says. */
class Program {
  readonly child: ChildProcess;
  readonly exited: Promise<{ readonly code: number | null; readonly stdout: string; readonly stderr: string }>;
  #stdout = "";
  #stderr = "";

  constructor(...args: string[]) {
    const all = ["--conditions=@sluice/source", MAIN, "--data", join(folder, "data"), ...args];
    this.child = spawn(process.execPath, all, { cwd: folder });
    this.child.stdout?.setEncoding("utf8").on("data", (text: string) => (this.#stdout += text));
    this.child.stderr?.setEncoding("utf8").on("data", (text: string) => (this.#stderr += text));
    this.exited = once(this.child, "close").then(([code]) => {
      return { code: code as number | null, stdout: this.#stdout, stderr: this.#stderr };
    });
    cleanups.push(() => this.child.kill("SIGKILL"));
  }

  /** Resolves when it has said this. */
  async says(pattern: RegExp): Promise<RegExpExecArray> {
    for (;;) {
      const found = pattern.exec(this.#stdout) ?? pattern.exec(this.#stderr);
      if (found !== null) return found;
      const gone = this.exited.then(({ code, stderr }) => {
        throw new Error(`it exited with ${code} and never said ${String(pattern)}:\n${stderr}`);
      });
      const { stdout, stderr } = this.child;
      await Promise.race([gone, once(stdout ?? this.child, "data"), once(stderr ?? this.child, "data")]);
    }
  }
}

/** The summary in the last line of standard output. */
function summary(stdout: string): Readonly<Record<string, number>> {
  return JSON.parse(stdout.trimEnd().split("\n").at(-1) ?? "") as Record<string, number>;
}

function writeEvents(count: number): string {
  const lines = Array.from({ length: count }, (_, n) =>
    JSON.stringify({ specversion: "1.0", id: String(n), source: "/test", type: "thing", data: { n } }),
  );
  const file = join(folder, "events.jsonl");
  writeFileSync(file, `${lines.join("\n")}\n`);
  return file;
}

function writeConfig(url: string, limits: object = {}): string {
  const config = {
    users: [{ id: "ann", roles: ["all"], webhook: { url, secret: SECRET } }],
    rules: [{ name: "everything", to: { roles: ["all"] }, channels: ["webhook"], template: "plain" }],
    templates: { plain: { webhook: { body: '{"n":{{ data.n | json }}}' } } },
    limits: { perUser: { count: 100_000, perMs: 1_000 }, ...limits },
    providers: { webhook: { allowPrivateNetworks: true } },
  };
  const file = join(folder, "config.json");
  writeFileSync(file, JSON.stringify(config));
  return file;
}

/** A real endpoint, and the webhook-ids it was asked with. */
async function endpoint(answer: (response: ServerResponse, nth: number) => void) {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(String(request.headers["webhook-id"]));
    request.resume().on("end", () => answer(response, asked.length));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  cleanups.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, asked };
}

function statuses(channel = "webhook"): Readonly<Record<string, number>> {
  const reader = new Reader(join(folder, "data", "dispatcher.sqlite"));
  try {
    return Object.fromEntries(reader.standing().notifications.get(channel) ?? []);
  } finally {
    reader.close();
  }
}

describe("--once --json", { timeout: 120_000 }, () => {
  it("delivers GitHub's examples to the local inbox, and adds up in the last line", async () => {
    const { code, stdout, stderr } = await new Program("--once", "--json").exited;
    expect({ code, stderr: code === 0 ? "" : stderr }).toEqual({ code: 0, stderr: "" });
    const { events, duplicates, notifications, delivered, deferred, dropped, dead, retried, durationMs } =
      summary(stdout);
    expect(stdout.trimEnd().split("\n")).toHaveLength(1);
    expect(events).toBeGreaterThan(600);
    expect(duplicates).toBeGreaterThan(0);
    expect(notifications).toBe([delivered, deferred, dropped, dead].reduce<number>((sum, n) => sum + (n ?? NaN), 0));
    const [email, webhook] = [statuses("email"), statuses("webhook")];
    const stored = (status: string): number => (email[status] ?? 0) + (webhook[status] ?? 0);
    expect({ delivered, deferred, dropped, dead }).toEqual({
      delivered: stored("delivered"),
      deferred: stored("deferred"),
      dropped: stored("dropped"),
      dead: stored("dead"),
    });
    expect([stored("queued"), stored("sending")]).toEqual([0, 0]);
    expect((deferred ?? 0) + (dropped ?? 0)).toBeGreaterThan(0);
    expect([retried, durationMs].every((n) => Number.isInteger(n))).toBe(true);
    expect(readFileSync(join(folder, "data", ".gitignore"), "utf8")).toBe("*\n");
  });

  it("accepts no event a second time, and delivers what was deferred before", async () => {
    const hook = await endpoint((response) => void response.writeHead(204).end());
    const limits = { perUser: { count: 4, perMs: 8_000 } };
    const args = ["--once", "--json", "--events", writeEvents(6), "--config", writeConfig(hook.url, limits)];
    const first = summary((await new Program(...args).exited).stdout);
    expect(first).toMatchObject({ events: 6, duplicates: 0, notifications: 6, dropped: 0, dead: 0 });
    const delivered = [first["delivered"] ?? 0];
    while (statuses()["delivered"] !== 6) {
      const next = summary((await new Program(...args).exited).stdout);
      expect(next).toMatchObject({ events: 0, duplicates: 6, notifications: next["delivered"], deferred: 0 });
      delivered.push(next["delivered"] ?? 0);
    }
    expect(delivered.reduce((sum, n) => sum + n)).toBe(6);
    expect(delivered[0]).toBeGreaterThanOrEqual(4);
    expect(hook.asked).toHaveLength(6);
    expect(new Set(hook.asked).size).toBe(6);
  });

  it("delivers everything though nobody reads any more what it says", async () => {
    const hook = await endpoint((response) => void response.writeHead(204).end());
    const program = new Program("--once", "--events", writeEvents(3), "--config", writeConfig(hook.url));
    program.child.stdout?.destroy();
    program.child.stderr?.destroy();
    expect((await program.exited).code).toBe(0);
    expect(statuses()).toEqual({ delivered: 3 });
  });

  it("tells which lines are no events, and takes the others", async () => {
    const hook = await endpoint((response) => void response.writeHead(204).end());
    const file = writeEvents(2);
    writeFileSync(file, `${readFileSync(file, "utf8")}not JSON\n{"id":"x"}\n`);
    const program = new Program("--once", "--json", "--events", "-", "--config", writeConfig(hook.url));
    program.child.stdin?.end(readFileSync(file));
    const { code, stdout, stderr } = await program.exited;
    expect(code).toBe(0);
    expect(summary(stdout)).toMatchObject({ events: 2, delivered: 2 });
    expect(stderr).toMatch(/line 3 is refused: .*\n/);
    expect(stderr).toMatch(/2 lines were refused/);
  });

  it("loses nothing when it is killed in the middle, and repeats with the same id only what was under way", async () => {
    const killed = Promise.withResolvers<void>();
    const hook = await endpoint((response, nth) => {
      if (nth === 40) killed.resolve();
      if (nth < 40 || nth > 60) response.writeHead(204).end();
      else setTimeout(() => response.writeHead(204).end(), 200);
    });
    const limits = { leaseMs: 5_000, concurrency: { webhook: 10 } }; // long enough to outlast a machine that stalls
    const args = ["--once", "--json", "--events", writeEvents(150), "--config", writeConfig(hook.url, limits)];
    const first = new Program(...args);
    await killed.promise;
    first.child.kill("SIGKILL");
    await first.exited;
    const before = statuses();
    expect(before["delivered"] ?? 0).toBeLessThan(60);
    const { code, stdout } = await new Program(...args).exited;
    expect(code).toBe(0);
    expect(statuses()).toEqual({ delivered: 150 });
    expect(summary(stdout)).toMatchObject({ delivered: 150 - (before["delivered"] ?? 0), dead: 0, dropped: 0 });
    expect(new Set(hook.asked).size).toBe(150);
    expect(hook.asked.length - 150).toBeLessThanOrEqual(2 * 10); // being sent, or sent and not written down yet
  });
});

describe("staying up", { timeout: 120_000 }, () => {
  it("takes events over HTTP until SIGTERM, then stops in order", async () => {
    const all = Promise.withResolvers<void>(); // a claim under way would be given back
    const hook = await endpoint((response, nth) => {
      response.writeHead(204).end();
      if (nth === 3) all.resolve();
    });
    const program = new Program("--port", "0", "--events", writeEvents(2), "--config", writeConfig(hook.url));
    const [, address = ""] = await program.says(/up at (http:\S+) /);
    const body = JSON.stringify({
      specversion: "1.0",
      id: "over-http",
      source: "/test",
      type: "thing",
      data: { n: 9 },
    });
    const headers = { "content-type": "application/cloudevents+json" };
    const response = await fetch(`${address}/v1/events`, { method: "POST", headers, body });
    expect(response.status).toBe(202);
    const health = (await (await fetch(`${address}/healthz`)).json()) as { ok: boolean };
    expect(health.ok).toBe(true);
    const history = await fetch(`${address}/v1/notifications/${hook.asked[0]}`);
    expect(await history.json()).toMatchObject({ id: hook.asked[0], status: "delivered", rule: "everything" });
    await all.promise;
    program.child.kill("SIGTERM");
    const { code, stdout, stderr } = await program.exited;
    expect(code).toBe(0);
    expect(stdout).toMatch(/^events +2$/m);
    expect(stderr).toMatch(/stopped: of what was under way \d+ ended, 0 were given back/);
    expect((statuses()["delivered"] ?? 0) + (statuses()["queued"] ?? 0)).toBeGreaterThanOrEqual(2);
  });

  it("ends at once at the second Ctrl-C", async () => {
    const hook = await endpoint(() => {});
    const program = new Program("--port", "0", "--events", writeEvents(1), "--config", writeConfig(hook.url));
    await program.says(/1 to send/);
    program.child.kill("SIGINT");
    await program.says(/once more to stop at once/);
    const impatient = setInterval(() => program.child.kill("SIGINT"), 50);
    const { code } = await program.exited;
    clearInterval(impatient);
    expect(code).toBe(130);
  });

  it("stops in order at one Ctrl-C that comes twice, as it does under npm", async () => {
    const hook = await endpoint((response) => response.writeHead(204).end());
    const program = new Program("--port", "0", "--events", writeEvents(1), "--config", writeConfig(hook.url));
    await program.says(/up at/);
    program.child.kill("SIGINT");
    program.child.kill("SIGINT");
    expect((await program.exited).code).toBe(0);
  });

  it("says which port is taken", async () => {
    const hook = await endpoint(() => {});
    const port = new URL(hook.url).port;
    const { code, stderr } = await new Program("--port", port).exited;
    expect(code).toBe(1);
    expect(stderr).toContain(`error: can't listen on 127.0.0.1, port ${port}: the port is taken`);
  });

  it("says why the data folder can't be used", async () => {
    writeFileSync(join(folder, "data"), "");
    const { code, stderr } = await new Program("--once").exited;
    expect(code).toBe(1);
    expect(stderr).toMatch(/^error: can't write to the data folder .*: it is not a folder$/m);
    expect(existsSync(join(folder, "data", "dispatcher.sqlite"))).toBe(false);
  });
});
