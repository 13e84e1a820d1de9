// The conformance cases against the real channels, whose providers are the inbox's real servers, and against the sink.
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server } from "node:net";
import PostalMime, { type Email } from "postal-mime";
import { describe, it } from "vitest";
import { startInbox } from "../inbox/inbox.ts";
import { sinkChannel } from "../inbox/sink-channel.ts";
import type { Content, User } from "../model.ts";
import { type Channel, type Receipt, SendError } from "./channel.ts";
import { type Arrival, channelCases, type ChannelHarness, type ProviderBehaviour } from "./conformance.ts";
import { emailChannel } from "./email.ts";
import { webhookChannel } from "./webhook.ts";

type Open = () => Promise<ChannelHarness & AsyncDisposable>;

const user: User = {
  id: "user-001",
  email: "user-001@example.com",
  webhook: { url: "https://receiver.example/hook", secret: `whsec_${btoa("a secret of twenty-four b")}` },
  roles: [],
  repositories: [],
};

const channels: Readonly<Record<string, Open>> = { email, webhook, "sink for email": sink };

for (const [name, open] of Object.entries(channels)) {
  describe(name, () => {
    for (const { title, run } of channelCases) {
      it(title, async () => {
        await using harness = await open();
        await run(harness);
      });
    }
  });
}

async function email(): Promise<ChannelHarness & AsyncDisposable> {
  const faults = { take: "ok", refuse: "5xx", fail: "4xx", "hang up": "drop", hang: "hang" } as const;
  const provider = new Provider({ subject: "A subject", text: "Some text" });
  const inbox = await startInbox({
    misbehave: () => faults[provider.behaviour],
    onReceipt: ({ id, to }, raw) => {
      provider.receive(
        PostalMime.parse(raw).then((mail) => ({ id, to: to.replace(/@.*/, ""), content: fields(mail) })),
      );
    },
  });
  const relay = await startRelay(inbox.smtpUrl);
  const channel = emailChannel({ url: relay.url, from: "Sluice <notifications@example.org>", maxConnections: 1 });
  return provider.harness(channel, relay.server, () => inbox.close());
}

function fields({ subject = "", text = "", html }: Email): Content {
  return { subject, text: body(text), ...(html !== undefined && { html: body(html) }) };
}

/** As it was handed in: mail ends its lines in its own way, and the last one always. */
function body(part: string): string {
  return part.replaceAll("\r\n", "\n").replace(/\n$/, "");
}

async function webhook(): Promise<ChannelHarness & AsyncDisposable> {
  const faults = { take: "ok", refuse: "4xx", fail: "5xx", "hang up": "drop", hang: "hang" } as const;
  const provider = new Provider({ body: "{}" });
  const inbox = await startInbox({
    misbehave: () => faults[provider.behaviour],
    secretOf: () => user.webhook?.secret,
    onReceipt: ({ id, to }, raw) => provider.receive(Promise.resolve({ id, to, content: { body: raw.toString() } })),
  });
  const relay = await startRelay(inbox.webhookBase);
  const channel = webhookChannel({ rewrite: ({ user: { id } }) => `${relay.url}/${id}`, maxConnections: 1 });
  return provider.harness(channel, relay.server, () => inbox.close());
}

async function sink(): Promise<ChannelHarness & AsyncDisposable> {
  const provider = new Provider({ subject: "A subject", text: "Some text" });
  const channel = sinkChannel("email", {
    answer: async ({ id, user: { id: to }, content }): Promise<Receipt> => {
      provider.receive(Promise.resolve({ id, to, content }));
      switch (provider.behaviour) {
        case "take":
          return { answer: "taken" };
        case "refuse":
          throw new SendError("no such mailbox", { kind: "permanent", providerFault: false });
        case "fail":
        case "hang up":
          throw new SendError("out of order", { kind: "transient", providerFault: true });
        case "hang":
          return new Promise(() => {});
        default:
          return provider.behaviour satisfies never;
      }
    },
  });
  return provider.harness(channel);
}

/** What all providers share: how they are told to behave, and the book of what reached them. */
class Provider {
  behaviour: ProviderBehaviour = "take";
  readonly #defaults: Content;
  readonly #arrived: Promise<Arrival>[] = [];
  readonly #awaited = new Map<number, () => void>();

  constructor(defaults: Content) {
    this.#defaults = defaults;
  }

  receive(arrival: Promise<Arrival>): void {
    this.#arrived.push(arrival);
    this.#awaited.get(this.#arrived.length - 1)?.();
  }

  harness(channel: Channel, relay?: Server, closeProvider?: () => Promise<void>): ChannelHarness & AsyncDisposable {
    let disconnected: Promise<unknown> | undefined;
    const disconnect = (): Promise<unknown> =>
      (disconnected ??= new Promise((resolve) => (relay === undefined ? resolve(undefined) : relay.close(resolve))));
    return {
      channel,
      hasWire: relay !== undefined,
      message: (id, content) => ({
        id,
        user,
        address: channel.addressOf(user) ?? "",
        content: { ...this.#defaults, ...content },
      }),
      behave: (behaviour) => void (this.behaviour = behaviour),
      arrivals: () => this.#arrived.length,
      arrival: async (index) => {
        if (this.#arrived.length <= index) {
          await new Promise<void>((resolve) => void this.#awaited.set(index, resolve));
        }
        const arrived = await this.#arrived[index];
        if (arrived === undefined) throw new Error(`message ${index} has not come`);
        return arrived;
      },
      disconnected: async () => void (await disconnect()),
      async [Symbol.asyncDispose]() {
        await channel.close();
        await closeProvider?.();
        await disconnect();
      },
    };
  }
}

/** Stands between a channel and its provider, since a server that is told to close waits until nobody is connected. */
async function startRelay(url: string): Promise<{ readonly url: string; readonly server: Server }> {
  const target = new URL(url);
  const [port, host] = [Number(target.port), target.hostname];
  const server = createServer((near) => {
    const far = connect(port, host);
    near.pipe(far).pipe(near);
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      one.on("error", () => {});
      one.once("close", () => other.destroy());
    }
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  target.port = `${(server.address() as AddressInfo).port}`;
  return { url: target.href, server };
}
