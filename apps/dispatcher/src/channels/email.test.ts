// Against real mail servers that are scripted line by line.
import { once } from "node:events";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { createInterface } from "node:readline";
import { describe, expect, it, onTestFinished } from "vitest";
import type { User } from "../model.ts";
import { type Message, SendError } from "./channel.ts";
import { type EmailChannel, emailChannel, type EmailOptions } from "./email.ts";

/** What the server says, by the first word it is told; `greeting` comes first, and `.` is the end of a message. */
type Script = Record<string, string>;

const POLITE: Script = {
  greeting: "220 ready",
  EHLO: "250 hello",
  MAIL: "250 sender fine",
  RCPT: "250 recipient fine",
  DATA: "354 go on",
  ".": "250 2.0.0 queued as 42",
  RSET: "250 forgotten",
  QUIT: "221 bye",
};

const user: User = { id: "user-001", email: "user-001@example.com", roles: [], repositories: [] };
const signal = new AbortController().signal;

describe("one message", () => {
  it("has its id and the sender's host as Message-ID, says that nobody wrote it, and brings the server's answer", async () => {
    const { url, mails } = await mailServer((socket) => void talk(socket, POLITE));
    const channel = open({ url, from: "The dispatcher <noreply@mail.example.org>" });
    expect(await channel.send(message("n-17"), { signal })).toEqual({ answer: "250 2.0.0 queued as 42" });
    expect(mails[0]).toMatch(/^Message-ID: <n-17@mail\.example\.org>$/m);
    expect(mails[0]).toMatch(/^From: The dispatcher <noreply@mail\.example\.org>$/m);
    expect(mails[0]).toMatch(/^To: user-001@example\.com$/m);
    expect(mails[0]).toMatch(/^Auto-Submitted: auto-generated$/m);
  });

  it("goes to nobody if its address is not exactly one mailbox", async () => {
    const { url, connections } = await mailServer((socket) => void talk(socket, POLITE));
    const channel = open({ url });
    const lists = ["a@b.example, c@d.example", "a@b.example;c@d.example", "Friends: a@b.example;", "<a@b.example>"];
    const attacks = [
      "a@b.example\r\nRCPT TO:<c@d.example>",
      "a@b.example ",
      '"a b"@c.example',
      "a@b@c.example",
      "",
      "a",
    ];
    for (const address of [...lists, ...attacks]) {
      const refused = await failure(channel, { ...message("n-1"), address });
      expect([address, refused.kind, refused.providerFault]).toEqual([address, "permanent", false]);
    }
    expect(connections()).toBe(0);
  });

  it("C200: is tried once when the mailbox does not exist, and the refusal is permanent", async () => {
    const said: string[] = [];
    const { url } = await mailServer((socket) => {
      void talk(socket, { ...POLITE, RCPT: "550 5.1.1 mailbox does not exist" }, (line) => said.push(line));
    });
    const refused = await failure(open({ url }), message("n-1"));
    expect([refused.kind, refused.providerFault]).toEqual(["permanent", false]);
    expect(refused.message).toBe("550 5.1.1 mailbox does not exist");
    expect(said.filter((line) => line.startsWith("RCPT"))).toHaveLength(1);
  });
});

describe("what the server says", () => {
  const session = ["transient", true];
  it.each<[string, string, readonly (string | boolean)[]]>([
    ["greeting", "421 too busy", session],
    ["greeting", "554 no service for you", session],
    ["AUTH", "535 5.7.8 wrong password", session],
    ["AUTH", "454 4.7.0 cannot check passwords now", session],
    ["MAIL", "530 5.7.0 authentication required", session],
    ["MAIL", "421 shutting down", session],
    ["MAIL", "451 out of order", session],
    ["MAIL", "553 we don't know this sender", ["permanent", true]],
    ["RCPT", "550 no such mailbox", ["permanent", false]],
    ["RCPT", "552 mailbox full", ["permanent", false]],
    ["RCPT", "450 greylisted", ["transient", false]],
    ["RCPT", "452 disk full", ["transient", true]],
    ["RCPT", "503 bad sequence", ["transient", true]],
    ["DATA", "554 no valid recipients", ["permanent", false]],
    [".", "554 looks like spam", ["permanent", false]],
    [".", "451 local error", ["transient", true]],
    [".", "421 shutting down", session],
  ])("%s: %s", async (verb, answer, expected) => {
    const script: Script = { ...POLITE, EHLO: "250-hello\r\n250 AUTH PLAIN", AUTH: "235 welcome", [verb]: answer };
    const { url } = await mailServer((socket) => void talk(socket, script));
    const channel = open({ url: url.replace("smtp://", "smtp://name:password@"), maxConnections: 1 });
    const failed = await failure(channel, message("n-1"));
    expect([failed.kind, failed.providerFault]).toEqual(expected);
    expect(failed.message).toContain(answer);
    script[verb] = POLITE[verb] ?? "235 welcome";
    await channel.send(message("n-2"), { signal });
    expect(channel.stats()).toEqual({ busy: 0, sent: 1, failed: 1, aborted: 0 });
  });

  it("is nothing when nobody listens: transient, and the provider's fault", async () => {
    const { url, server } = await mailServer(() => {});
    await new Promise((resolve) => server.close(resolve));
    const failed = await failure(open({ url }), message("n-1"));
    expect([failed.kind, failed.providerFault]).toEqual(["transient", true]);
    expect(failed.message).toContain("ECONNREFUSED");
  });
});

describe("connections", () => {
  it("C194: three that the server drops after 15 ms each end the send, if two may be lost", async () => {
    const { url, connections } = await mailServer((socket) => void setTimeout(() => socket.destroy(), 15));
    const channel = open({ url, maxReconnects: 2 });
    const failed = await failure(channel, message("n-1"));
    expect([failed.kind, failed.providerFault, connections()]).toEqual(["transient", true, 3]);
    expect(channel.stats()).toEqual({ busy: 0, sent: 0, failed: 1, aborted: 0 });
  });

  it.each<[string, (socket: Socket) => unknown]>([
    ["hangs up", (socket) => socket.destroy()],
    ["says 421", (socket) => socket.end("421 not now\r\n")],
    ["hangs up when it has greeted", (socket) => socket.write("220 ready\r\n", () => socket.destroy())],
  ])("C198: all places are free again when the server %s ten times and then accepts", async (_, refuse) => {
    let refused = 0;
    let together: (() => void) | undefined;
    const { url } = await mailServer((socket) => {
      if (refused === 10) return void talk(socket, POLITE, (line) => line.startsWith("MAIL") && together?.());
      refused += 1;
      return void refuse(socket);
    });
    const channel = open({ url, maxConnections: 2, maxReconnects: 0 });
    const sends = Array.from({ length: 12 }, (_each, index) => channel.send(message(`n-${index}`), { signal }));
    const results = (await Promise.allSettled(sends)).map(({ status }) => status);
    expect(results).toEqual([...Array<string>(10).fill("rejected"), "fulfilled", "fulfilled"]);
    expect(channel.stats()).toEqual({ busy: 0, sent: 2, failed: 10, aborted: 0 });
    // Both places at once: the server lets nobody go on before two have come.
    const both = Promise.withResolvers<void>();
    let come = 0;
    together = () => (come += 1) === 2 && both.resolve();
    const last = [channel.send(message("n-12"), { signal }), channel.send(message("n-13"), { signal })];
    await both.promise;
    await Promise.all(last);
  });

  it("are used again, and one that the server has given up in the meantime costs no attempt", async () => {
    const { url, connections, mails } = await mailServer((socket, number) => {
      void talk(socket, POLITE, (line, told) => {
        if (number === 1 && line.startsWith("MAIL") && told > 8) socket.destroy();
      });
    });
    const channel = open({ url, maxConnections: 1 });
    await channel.send(message("n-1"), { signal });
    await channel.send(message("n-2"), { signal });
    expect(connections()).toBe(1);
    await channel.send(message("n-3"), { signal });
    expect([connections(), mails.length]).toEqual([2, 3]);
  });

  it.each([
    ["greets", {}],
    ["answers the message", { ...POLITE, ".": undefined }],
  ])("end by themselves when the server never %s, and their places are free again", async (_, script) => {
    let said: Partial<Script> = script;
    const { url } = await mailServer((socket) => void talk(socket, said));
    const channel = open({ url, maxConnections: 1, timeoutMs: 1_000 });
    const failed = await failure(channel, message("n-1"));
    expect([failed.kind, failed.providerFault]).toEqual(["transient", true]);
    said = POLITE;
    await channel.send(message("n-3"), { signal });
    expect(channel.stats()).toEqual({ busy: 0, sent: 1, failed: 1, aborted: 0 });
  });

  it("carry no password in the clear to another machine", async () => {
    const said: string[] = [];
    const { url } = await mailServer((socket) => {
      void talk(socket, { ...POLITE, EHLO: "250-hello\r\n250 AUTH PLAIN" }, (line) => said.push(line));
    });
    // Not written as loopback, so it might be anywhere.
    const elsewhere = url.replace("smtp://127.0.0.1", "smtp://name:password@0.0.0.0");
    const failed = await failure(open({ url: elsewhere }), message("n-1"));
    expect([failed.kind, failed.providerFault]).toEqual(["transient", true]);
    expect(said.join()).not.toMatch(/AUTH|MAIL/);
  });
});

it("names option, rule and value of a bad option", () => {
  const options = { url: "smtp://localhost", from: "a@example.org" };
  const bad: [Partial<EmailOptions>, string][] = [
    [{ url: "http://localhost" }, 'url must be smtp://host or smtps://host, got "http://localhost"'],
    [{ url: "mail.example.org" }, 'url must be smtp://host or smtps://host, got "mail.example.org"'],
    [{ from: "nobody" }, 'from must be one e-mail address, got "nobody"'],
    [{ from: "a@b.example, c@d.example" }, 'from must be one e-mail address, got "a@b.example, c@d.example"'],
    [{ maxConnections: 0 }, "maxConnections must be an integer >= 1, got 0"],
    [{ timeoutMs: 0.5 }, "timeoutMs must be an integer >= 1, got 0.5"],
    [{ maxReconnects: -1 }, "maxReconnects must be an integer >= 0, got -1"],
  ];
  for (const [option, why] of bad) expect(() => emailChannel({ ...options, ...option })).toThrow(new RangeError(why));
});

function open(options: Omit<EmailOptions, "from"> & { readonly from?: string }): EmailChannel {
  const channel = emailChannel({ from: "noreply@example.org", ...options });
  onTestFinished(() => channel.close());
  return channel;
}

function message(id: string): Message {
  return { id, user, address: user.email ?? "", content: { subject: "A subject", text: "Some text" } };
}

async function failure(channel: EmailChannel, sent: Message): Promise<SendError> {
  const reason: unknown = await channel.send(sent, { signal }).catch((error: unknown) => error);
  if (reason instanceof SendError) return reason;
  throw new Error(`not a SendError: ${String(reason)}`);
}

interface MailServer {
  readonly url: string;
  readonly server: Server;
  readonly connections: () => number;
  /** Those that were taken. */
  readonly mails: string[];
}

async function mailServer(serve: (socket: Socket, connection: number) => void): Promise<MailServer> {
  const sockets = new Set<Socket>();
  let count = 0;
  const mails: string[] = [];
  const server = createServer((socket) => {
    count += 1;
    sockets.add(socket);
    socket.on("error", () => {});
    takers.set(socket, (mail) => mails.push(mail));
    serve(socket, count);
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { url: `smtp://127.0.0.1:${port}`, server, mails, connections: () => count };
}

const takers = new WeakMap<Socket, (mail: string) => void>();

/** Goes on until the client hangs up, silent where the script has nothing to say; `hear` gets each command and its number. */
async function talk(
  socket: Socket,
  script: Partial<Script>,
  hear?: (line: string, told: number) => unknown,
): Promise<void> {
  const say = (verb: string): boolean =>
    script[verb] !== undefined && socket.writable && socket.write(`${script[verb]}\r\n`);
  say("greeting");
  let mail: string[] | undefined;
  let told = 0;
  for await (const line of createInterface({ input: socket })) {
    if (mail !== undefined && line !== ".") mail.push(line);
    else {
      told += 1;
      hear?.(line, told);
      const verb = line.split(" ", 1)[0] ?? "";
      if (mail !== undefined && script["."]?.startsWith("2") === true) takers.get(socket)?.(mail.join("\n"));
      mail = verb === "DATA" && script["DATA"]?.startsWith("3") === true ? [] : undefined;
      say(verb);
    }
  }
}
