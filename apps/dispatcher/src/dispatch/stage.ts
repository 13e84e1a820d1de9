/** What the tests of the dispatcher play on: a database in a folder of its own, and endpoints on loopback. */
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { pino } from "pino";
import type { Clock } from "sluice";
import { seededRandom, VirtualClock } from "sluice/testing";
import { SendError } from "../channels/channel.ts";
import { channelForms } from "../channels/forms.ts";
import { webhookChannel } from "../channels/webhook.ts";
import type { Config } from "../config/config.ts";
import { parseConfig } from "../config/parse.ts";
import { sinkChannel, type SinkChannel, type SinkChannelOptions } from "../inbox/sink-channel.ts";
import type { Event, HistoryEntry } from "../model.ts";
import { Dispatcher, type DispatcherOptions } from "./dispatcher.ts";

export type Answer = (request: IncomingMessage, response: ServerResponse, nth: number) => void;

/** Longer than any stop takes. */
const STOP_MS = 20_000;

export class Stage {
  readonly folder: string = mkdtempSync(join(tmpdir(), "dispatcher-"));
  readonly file: string = join(this.folder, "dispatcher.sqlite");
  readonly #dispatchers: (() => Promise<unknown>)[] = [];
  readonly #endpoints: (() => Promise<void>)[] = [];

  /** Without channels: webhooks, to any address. */
  async start(options: Partial<DispatcherOptions> & { readonly config: Config }): Promise<Dispatcher> {
    const { clock } = options;
    const channels = options.channels ?? [webhookChannel({ allowPrivateNetworks: true, clock })];
    const log = pino({ level: "silent" });
    const random = seededRandom(1); // so that a test that passes once passes always
    const dispatcher = await Dispatcher.open({ file: this.file, log, random, ...options, channels });
    this.#dispatchers.push(async () => {
      const stopped = dispatcher.stop();
      if (clock instanceof VirtualClock) await clock.advance(STOP_MS); // it waits for what never ends
      await stopped;
    });
    dispatcher.start();
    return dispatcher;
  }

  /** A real endpoint, and the webhook-ids it was asked with. */
  async endpoint(answer: Answer): Promise<{ readonly url: string; readonly ids: readonly string[] }> {
    const ids: string[] = [];
    const server = createServer((request, response) => {
      ids.push(String(request.headers["webhook-id"]));
      request.resume().on("end", () => answer(request, response, ids.length));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    this.#endpoints.push(() => new Promise((resolve) => (server.close(() => resolve()), server.closeAllConnections())));
    return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, ids };
  }

  /** The ids of all notifications, oldest first. */
  ids(): string[] {
    const db = new DatabaseSync(this.file, { readOnly: true });
    const rows = db.prepare("SELECT id FROM notifications ORDER BY n").all() as unknown as { readonly id: string }[];
    db.close();
    return rows.map(({ id }) => id);
  }

  async close(): Promise<void> {
    for (const stop of this.#dispatchers.toReversed()) await stop();
    for (const stop of this.#endpoints) await stop();
    rmSync(this.folder, { recursive: true });
  }
}

export interface ConfigFacts {
  readonly users?: readonly string[] | undefined;
  /** Of the users' webhooks. */
  readonly urls?: Readonly<Record<string, string>> | undefined;
  readonly channels?: readonly string[] | undefined;
  readonly limits?: object | undefined;
}

/** Every event reaches every user, over every channel, without a limit to speak of. */
export function stageConfig({ users = ["ann"], urls = {}, channels = ["webhook"], limits }: ConfigFacts): Config {
  const secret = `whsec_${Buffer.alloc(24, 1).toString("base64")}`;
  const value = {
    users: users.map((id) => {
      const url = urls[id] ?? "https://hooks.example.com/";
      return { id, email: `${id}@example.com`, webhook: { url, secret }, roles: ["all"] };
    }),
    rules: [{ name: "everything", to: { roles: ["all"] }, channels, template: "plain" }],
    templates: {
      plain: { webhook: { body: '{"n":{{ data.n | json }}}' }, email: { subject: "s", text: "{{ data.n }}" } },
    },
    limits: { perUser: { count: 1_000_000, perMs: 1_000 }, ...limits },
    intake: { capacity: 2_000 },
  };
  return parseConfig(value, [...channelForms.values()]);
}

export function someEvents(count: number, from = 0): Event[] {
  const numbers = Array.from({ length: count }, (_, i) => from + i);
  return numbers.map((n) => ({ id: String(n), source: "test", type: "thing", data: { n } }));
}

/** Answers with this status. */
export function status(code: number): Answer {
  return (_, response) => void response.writeHead(code).end();
}

/** A provider in this process, and when it was asked. */
export function provider(
  clock: Clock,
  answer?: SinkChannelOptions["answer"],
  name = "webhook",
): { readonly channel: SinkChannel; readonly askedAt: readonly number[] } {
  const askedAt: number[] = [];
  const channel = sinkChannel(name, {
    answer: (message) => {
      askedAt.push(clock.wallNow());
      return answer?.(message) ?? { answer: "taken" };
    },
  });
  return { channel, askedAt };
}

/** What a provider does that has troubles of its own. */
export function refuse(retryAfterMs?: number): never {
  throw new SendError("500 oh", { kind: "transient", providerFault: true, retryAfterMs });
}

export function entriesOf({ reader }: Dispatcher, id: string): readonly HistoryEntry[] {
  const history = reader.history(id);
  if (history === undefined) throw new Error(`there is no ${id}`);
  return history.entries;
}

export function kindsOf(dispatcher: Dispatcher, id: string): string {
  return entriesOf(dispatcher, id)
    .map(({ kind }) => kind)
    .join(" ");
}
