// The inbox over real connections; what a channel makes of its answers is in channels/conformance.test.ts.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Webhook } from "standardwebhooks";
import { describe, expect, it, onTestFinished } from "vitest";
import type { Channel, Message } from "../channels/channel.ts";
import { emailChannel } from "../channels/email.ts";
import { webhookChannel } from "../channels/webhook.ts";
import { type Inbox, inboxAddress, type InboxOptions, startInbox } from "./inbox.ts";
import type { Behaviour } from "./misbehaviour.ts";
import { type InboxReceipt, isTaken } from "./receipt.ts";

const secret = `whsec_${btoa("a secret of twenty-four b")}`;
const signal = new AbortController().signal;

describe.each(["email", "webhook"] as const)("the sink for %s", (name) => {
  it("writes down who got which message, before the sender gets an answer", async () => {
    const log: string[] = [];
    const inbox = await open({ onReceipt: ({ id }) => void log.push(`received ${id}`) });
    await channelTo(inbox, name).send(message("n-17"), { signal });
    log.push("answered");
    expect(log).toEqual(["received n-17", "answered"]);
    const [receipt] = inbox.recent();
    expect(receipt).toMatchObject({ channel: name, id: "n-17", outcome: "ok" });
    expect(receipt).toMatchObject(
      name === "email" ? { to: "jürgen@example.com", subject: "Grüße, 世界 🌍" } : { to: "team a/b" },
    );
  });

  it("takes what it answers late or not at all, and nothing that it refuses or hangs up on before", async () => {
    const faults: Behaviour[] = ["slow", "lose", "4xx", "5xx", "drop", "ok"];
    const taken = [true, true, false, false, false, true];
    const answered = [true, false, false, false, false, true];
    for (const [index, fault] of faults.entries()) {
      const inbox = await open({ misbehave: { ...(fault !== "ok" && { [fault]: 1 }), slowMs: 1 } });
      const sent = await channelTo(inbox, name)
        .send(message("n-1"), { signal })
        .then(
          () => true,
          () => false,
        );
      expect([fault, sent]).toEqual([fault, answered[index]]);
      expect(inbox.recent().map((receipt) => [receipt.outcome, isTaken(receipt)])).toEqual([[fault, taken[index]]]);
      expect(inbox.stats()[name]).toEqual({ [fault]: 1 });
    }
  });

  it("never answers when it hangs, and closes all the same", async () => {
    const arrived = Promise.withResolvers<void>();
    const inbox = await open({ misbehave: () => "hang", onReceipt: () => arrived.resolve() });
    const sent = channelTo(inbox, name).send(message("n-1"), { signal });
    await arrived.promise;
    await Promise.all([inbox.close(), inbox.close()]);
    await expect(sent).rejects.toMatchObject({ kind: "transient", providerFault: true });
  });

  it("hangs up without an answer when its receipt can't be written", async () => {
    const inbox = await open({
      onReceipt: () => {
        throw new Error("disk full");
      },
    });
    const sent = channelTo(inbox, name).send(message("n-1"), { signal });
    await expect(sent).rejects.toMatchObject({ kind: "transient", providerFault: true });
    expect(inbox.recent()).toEqual([]);
  });

  it("keeps the last 200 receipts, and counts all", async () => {
    const inbox = await open();
    const channel = channelTo(inbox, name);
    for (let id = 1; id <= 250; id += 1) await channel.send(message(`n-${id}`), { signal });
    expect(inbox.recent().map(({ id }) => id)).toEqual(Array.from({ length: 200 }, (_, index) => `n-${index + 51}`));
    expect(inbox.stats()[name]).toEqual({ ok: 250 });
  });
});

describe("webhooks", () => {
  it("need the headers of Standard Webhooks, and a right signature where the secret is known", async () => {
    const inbox = await open({ secretOf: (user) => (user === "known" ? secret : undefined) });
    const now = new Date();
    const headers = (signature: string): Record<string, string> => ({
      "webhook-id": "n-1",
      "webhook-timestamp": `${Math.floor(now.getTime() / 1_000)}`,
      "webhook-signature": signature,
    });
    const right = new Webhook(secret).sign("n-1", now, "{}");
    const other = new Webhook(`whsec_${btoa("another secret of 24 byt")}`).sign("n-1", now, "{}");
    const post = async (user: string, signed: Record<string, string>): Promise<number> => {
      const response = await fetch(inboxAddress(inbox.webhookBase, user), {
        method: "POST",
        headers: signed,
        body: "{}",
      });
      return response.status;
    };
    expect(await post("known", headers(right))).toBe(204);
    expect(await post("known", headers(other))).toBe(401);
    expect(await post("unknown", headers(other))).toBe(204);
    for (const name of Object.keys(headers(right)))
      expect(await post("unknown", { ...headers(right), [name]: "" })).toBe(401);
    expect(inbox.stats().webhook).toEqual({ ok: 2, invalid: 4 });
  });

  it("go to /hooks/<user>, and nothing else is there", async () => {
    const inbox = await open();
    const base = inbox.webhookBase;
    for (const url of [base, `${base}/a/b`, `${base}/%`, base.replace("/hooks", "/")]) {
      expect((await fetch(url, { method: "POST", body: "{}" })).status).toBe(404);
    }
    expect((await fetch(`${base}/a`)).status).toBe(404);
  });

  it("of more than a megabyte are refused", async () => {
    const inbox = await open();
    const body = "x".repeat(1_048_577);
    expect((await fetch(`${inbox.webhookBase}/a`, { method: "POST", body })).status).toBe(413);
    expect(inbox.recent()).toEqual([]);
  });
});

describe("mails", () => {
  it("without a Message-ID are refused", async () => {
    const inbox = await open();
    expect(await deliver(inbox, "Subject: x\r\n\r\nbody <n-1@example.org>\r\n")).toMatch(/^554 /);
    expect(inbox.stats().email).toEqual({ invalid: 1 });
  });

  it("of more than a megabyte are refused", async () => {
    const inbox = await open();
    const long = `Message-ID: <n-1@example.org>\r\n\r\n${"x".repeat(70)}\r\n`.repeat(12_000);
    expect(await deliver(inbox, long)).toMatch(/^552 /);
    expect(inbox.stats().email).toEqual({ invalid: 1 });
  });
});

it("names option, rule and value of a bad option", async () => {
  await expect(startInbox({ smtpPort: 65_536 })).rejects.toThrow(
    "smtpPort must be an integer from 0 to 65535, got 65536",
  );
  await expect(startInbox({ httpPort: -1 })).rejects.toThrow("httpPort must be an integer from 0 to 65535, got -1");
  await expect(startInbox({ misbehave: { hang: 2 } })).rejects.toThrow("misbehave hang must be from 0 to 1, got 2");
});

it("starts neither server when one of its ports is taken", async () => {
  const inbox = await open();
  const taken = Number(new URL(inbox.webhookBase).port);
  const before = await startInbox();
  const smtpPort = Number(new URL(before.smtpUrl).port);
  await before.close();
  await expect(startInbox({ smtpPort, httpPort: taken })).rejects.toMatchObject({ code: "EADDRINUSE" });
  expect((await open({ smtpPort })).smtpUrl).toBe(before.smtpUrl);
  await expect(startInbox({ smtpPort: taken })).rejects.toMatchObject({ code: "EADDRINUSE" });
});

describe("as a process of its own", () => {
  it("has each receipt in its file by the time the sender gets an answer, so that a kill loses none", async () => {
    const file = join(folder(), "receipts.jsonl");
    const child = run("--receipts", file, "--seed", "3");
    const addresses = await firstLine(child);
    await channelTo(addresses, "email").send(message("n-1"), { signal });
    await channelTo(addresses, "webhook").send(message("n-2"), { signal });
    child.kill("SIGKILL");
    await once(child, "close");
    const lines = readFileSync(file, "utf8").trimEnd().split("\n");
    const receipts = lines.map((line) => JSON.parse(line) as InboxReceipt);
    expect(receipts.map(({ id, outcome }) => [id, outcome])).toEqual([
      ["n-1", "ok"],
      ["n-2", "ok"],
    ]);
  });

  it("ends with 0 on SIGTERM, also while somebody is connected", async () => {
    const child = run();
    const { smtpUrl } = await firstLine(child);
    const socket = connect(Number(new URL(smtpUrl).port), "127.0.0.1");
    onTestFinished(() => void socket.destroy());
    socket.on("error", () => {});
    await once(socket, "data"); // the greeting
    child.kill("SIGTERM");
    const [code] = (await once(child, "close")) as [number | null];
    expect(code).toBe(0);
  });

  it("refuses a misbehaviour it can't read", async () => {
    const child = run("--misbehave", "3xx=1");
    const said: string[] = [];
    child.stderr?.on("data", (chunk: Buffer) => said.push(chunk.toString()));
    const [code] = (await once(child, "close")) as [number | null];
    expect(code).toBe(1);
    expect(said.join("")).toContain('misbehave must name slow, 4xx, 5xx, drop, lose, hang, got "3xx"');
  });
});

async function open(options: InboxOptions = {}): Promise<Inbox> {
  const inbox = await startInbox(options);
  onTestFinished(() => inbox.close());
  return inbox;
}

function channelTo(
  { smtpUrl, webhookBase }: Pick<Inbox, "smtpUrl" | "webhookBase">,
  name: "email" | "webhook",
): Channel {
  const channel =
    name === "email"
      ? emailChannel({ url: smtpUrl, from: "noreply@example.org" })
      : webhookChannel({ rewrite: ({ user }) => inboxAddress(webhookBase, user.id) });
  onTestFinished(() => channel.close());
  return channel;
}

function message(id: string): Message {
  const webhook = { url: "https://receiver.example/hook", secret };
  const user = { id: "team a/b", email: "jürgen@example.com", webhook, roles: [], repositories: [] };
  const content = { subject: "Grüße, 世界 🌍", text: "Some text", body: "{}" };
  return { id, user, address: user.email, content };
}

/** What the server says to the message itself. */
async function deliver(inbox: Inbox, mail: string): Promise<string> {
  const { hostname, port } = new URL(inbox.smtpUrl);
  const socket = connect(Number(port), hostname);
  onTestFinished(() => void socket.destroy());
  const commands = ["EHLO me", "MAIL FROM:<a@example.org>", "RCPT TO:<b@example.org>", "DATA", `${mail}.`];
  for await (const line of createInterface({ input: socket })) {
    if (/^\d{3}-/.test(line)) continue;
    const next = commands.shift();
    if (next === undefined) return line;
    socket.write(`${next}\r\n`);
  }
  throw new Error("the server hung up");
}

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), "inbox-"));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

function run(...flags: string[]): ChildProcess {
  const main = new URL("main.ts", import.meta.url).pathname;
  const child = spawn(process.execPath, ["--conditions=@sluice/source", main, ...flags], { stdio: "pipe" });
  onTestFinished(() => void child.kill("SIGKILL"));
  return child;
}

async function firstLine(child: ChildProcess): Promise<Pick<Inbox, "smtpUrl" | "webhookBase">> {
  if (child.stdout === null) throw new Error("no standard output");
  const [line] = (await once(createInterface({ input: child.stdout }), "line")) as [string];
  return JSON.parse(line) as Pick<Inbox, "smtpUrl" | "webhookBase">;
}
