// The two programs of the drill: the dispatcher, which is killed, and the inbox, which lives on.
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createServer, type AddressInfo } from "node:net";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";

export interface Aim {
  readonly phase: string;
  readonly nth: number;
  readonly delayMs: number;
}

const SOURCE = "--conditions=@sluice/source";
const DISPATCHER = "apps/dispatcher/src/main.ts";
const INBOX = "apps/dispatcher/src/inbox/main.ts";
const START_LIMIT_MS = 60_000;

export async function startInbox(receipts: string, misbehave: string, seed: number): Promise<Inbox> {
  const args = [SOURCE, INBOX, "--receipts", receipts, "--misbehave", misbehave, "--seed", `${seed}`];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  endWithDrill(child);
  const [line] = (await once(createInterface({ input: child.stdout }), "line")) as [string];
  const { smtpUrl, webhookBase } = JSON.parse(line) as Inbox;
  return { smtpUrl, webhookBase, stop: () => end(child) };
}

export interface Inbox {
  readonly smtpUrl: string;
  readonly webhookBase: string;
  stop(): Promise<void>;
}

/** Resolves when it answers. */
export async function startDispatcher(
  data: string,
  config: string,
  port: number,
  aim: Aim | undefined,
): Promise<Dispatcher> {
  const preload = new URL("./kill-at.ts", import.meta.url).href;
  const aimed = aim === undefined ? [] : ["--import", preload];
  const flags = ["--data", data, "--config", config, "--port", `${port}`, "--events", "/dev/null"];
  const child = spawn(process.execPath, [SOURCE, ...aimed, DISPATCHER, ...flags], {
    stdio: ["ignore", "ignore", "pipe"],
    env: { ...process.env, KILL_AT: JSON.stringify(aim) },
  });
  endWithDrill(child);
  let log = "";
  child.stderr.on("data", (chunk: Buffer) => (log = (log + chunk.toString()).slice(-4_000)));
  const watch = async (): Promise<void> => {
    const [code, signal] = await once(child, "exit");
    if (signal !== "SIGKILL" && code !== 0) throw new Error(`the dispatcher ended with ${signal ?? code}: ${log}`);
  };
  const ended = watch();
  ended.catch(() => {}); // told to whoever awaits it
  const dispatcher = { ended, stop: () => end(child), kill: () => void child.kill("SIGKILL") };
  const until = performance.now() + START_LIMIT_MS;
  while (!(await answers(port))) {
    if (child.exitCode !== null || child.signalCode !== null) return dispatcher; // killed while it started
    if (performance.now() > until) throw new Error(`the dispatcher did not answer on port ${port}: ${log}`);
    await sleep(20);
  }
  return dispatcher;
}

export interface Dispatcher {
  /** Rejects if it ended by anything but a kill or a clean stop. */
  readonly ended: Promise<void>;
  stop(): Promise<void>;
  kill(): void;
}

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}

async function answers(port: number): Promise<boolean> {
  try {
    return (await fetch(`http://127.0.0.1:${port}/healthz`, { signal: AbortSignal.timeout(1_000) })).ok;
  } catch {
    return false;
  }
}

/** Also where the drill fails: nothing of it goes on without it. */
function endWithDrill(child: ChildProcess): void {
  const kill = (): void => void child.kill("SIGKILL");
  process.once("exit", kill);
  child.once("exit", () => process.off("exit", kill));
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, "exit");
  child.kill("SIGTERM");
  await gone;
}
