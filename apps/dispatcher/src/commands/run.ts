/**
 * The main job: boots the dispatcher on its embedded store, with a local inbox where no provider is configured, feeds it
 * events, shows how far it has come, sums up, and stays up until it is told to stop.
 */
import { fileURLToPath } from "node:url";
import { StoreOpenError } from "@sluice/jobs/sqlite";
import { type Logger, pino } from "pino";
import { systemClock } from "sluice";
import { channelForms } from "../channels/forms.ts";
import type { Config } from "../config/config.ts";
import { ConfigError } from "../config/faults.ts";
import { loadConfig } from "../config/load.ts";
import { Dispatcher } from "../dispatch/dispatcher.ts";
import type { Misbehaviour } from "../inbox/misbehaviour.ts";
import { intakeApp } from "../intake/http.ts";
import { Progress } from "../report/progress.ts";
import { summaryOf, summaryText } from "../report/summary.ts";
import { makeDataFolder } from "./data.ts";
import { CommandError, systemReason } from "./failure.ts";
import { checkEventsFile, feed } from "./feed.ts";
import { openProviders } from "./providers.ts";
import { listen } from "./server.ts";
import { onStopSignal } from "./signals.ts";
import type { Terminal } from "./terminal.ts";

export interface RunOptions {
  readonly data: string;
  readonly config?: string | undefined;
  readonly events?: string | undefined;
  readonly once?: boolean | undefined;
  readonly json?: boolean | undefined;
  readonly chaos?: boolean | undefined;
  readonly host: string;
  readonly port: number;
  readonly logLevel?: string | undefined;
}

interface Context {
  readonly options: RunOptions;
  readonly config: Config;
  /** The database. */
  readonly file: string;
  readonly terminal: Terminal;
  readonly log: Logger;
  /** Aborts when the process is told to stop. */
  readonly signal: AbortSignal;
}

const SAMPLE_CONFIG = fileURLToPath(new URL("../../sample/config.yaml", import.meta.url));

/** Every kind of trouble, and each seldom enough that most breakers stay closed. */
const CHAOS: Misbehaviour = { slow: 0.05, "4xx": 0.03, "5xx": 0.06, drop: 0.05, lose: 0.03, hang: 0.01, slowMs: 1_500 };
/** How long the summary waits for breakers to close. */
const PATIENCE_MS = 120_000;

export async function run(options: RunOptions, terminal: Terminal): Promise<void> {
  const { json, once, chaos, events, data } = options;
  if (json === true && once !== true) throw new CommandError("--json needs --once", 2);
  const config = await readConfig(options.config ?? SAMPLE_CONFIG);
  const { email, webhook } = config.providers;
  if (chaos === true && email !== undefined && webhook !== undefined)
    throw new CommandError("--chaos needs the local inbox, and the configuration names a provider for each channel", 2);
  checkEventsFile(events);
  const file = makeDataFolder(data);
  const log = pino({ level: options.logLevel ?? (process.stderr.isTTY ? "warn" : "info") }, pino.destination(2));
  const stop = onStopSignal(() => terminal.note("stopping; once more to stop at once"));
  try {
    await withInbox({ options, config, file, terminal, log, signal: stop.signal });
  } finally {
    stop.forget();
  }
}

async function readConfig(file: string): Promise<Config> {
  try {
    return await loadConfig(file, [...channelForms.values()]);
  } catch (error) {
    if (error instanceof ConfigError) throw new CommandError(error.message, 2, { cause: error });
    throw new CommandError(`can't read the configuration ${file}: ${systemReason(error)}`, 2, { cause: error });
  }
}

async function withInbox(context: Context): Promise<void> {
  const { options, config, terminal } = context;
  const { channels, inbox } = await openProviders(config, options.chaos === true ? CHAOS : {});
  if (inbox !== undefined) terminal.note(`the local inbox is at ${inbox.smtpUrl} and ${inbox.webhookBase}`);
  try {
    const dispatcher = await openDispatcher(context, channels);
    try {
      await (options.once === true ? runOnce(dispatcher, context) : stayUp(dispatcher, context));
    } finally {
      await dispatcher.stop();
    }
  } finally {
    await Promise.all(channels.map((channel) => channel.close()));
    await inbox?.close();
  }
}

async function openDispatcher(
  { file, config, log }: Context,
  channels: Awaited<ReturnType<typeof openProviders>>["channels"],
): Promise<Dispatcher> {
  try {
    return await Dispatcher.open({ file, config, channels, log });
  } catch (error) {
    if (error instanceof StoreOpenError) throw new CommandError(error.message, 1, { cause: error });
    throw error;
  }
}

async function runOnce(dispatcher: Dispatcher, context: Context): Promise<void> {
  if (await work(dispatcher, context)) return;
  await stopInOrder(dispatcher, context);
  throw new CommandError("stopped before everything was done; start it again to go on");
}

async function stayUp(dispatcher: Dispatcher, context: Context): Promise<void> {
  const { options, config, terminal, log, signal } = context;
  const { journal, reader } = dispatcher;
  const app = intakeApp({ sink: journal, config: config.intake, reader, health: () => dispatcher.health(), log });
  const server = await listen(app, options.host, options.port);
  try {
    terminal.note(`listening on ${server.address}`);
    if (await work(dispatcher, context)) terminal.print(`up at ${server.address} until SIGTERM or Ctrl-C`);
    await aborted(signal);
  } finally {
    await server.close(); // nothing new comes in while the rest stops
  }
  await stopInOrder(dispatcher, context);
}

/** Feeds, waits and sums up; false if it was told to stop before. */
async function work(dispatcher: Dispatcher, { options, config, terminal, signal }: Context): Promise<boolean> {
  const { counts, journal } = dispatcher;
  const startedAt = systemClock.now();
  const progress = new Progress(terminal.progress, { counts, standing: () => dispatcher.standing() });
  progress.start();
  dispatcher.start();
  try {
    await feed(options.events, journal, config.intake, (text) => progress.note(text), signal);
    await dispatcher.whenIdle(PATIENCE_MS, signal);
  } catch (error) {
    if (!signal.aborted || error !== signal.reason) throw error;
    return false;
  } finally {
    progress.stop();
  }
  const durationMs = systemClock.now() - startedAt;
  const text = summaryText(counts, durationMs);
  if (options.json === true) {
    terminal.note(text);
    terminal.print(JSON.stringify(summaryOf(counts, durationMs)));
  } else terminal.print(text);
  return true;
}

async function stopInOrder(dispatcher: Dispatcher, { terminal }: Context): Promise<void> {
  const { finished, released, lost } = await dispatcher.stop();
  const left = lost === 0 ? "" : `, ${lost} are left to their leases`;
  terminal.note(`stopped: of what was under way ${finished} ended, ${released} were given back${left}`);
}

function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}
