/** The channels of a configuration, and the local inbox for those whose provider it leaves out. */
import type { Channel } from "../channels/channel.ts";
import { emailChannel } from "../channels/email.ts";
import { webhookChannel } from "../channels/webhook.ts";
import type { Config } from "../config/config.ts";
import { inboxAddress, startInbox, type Inbox } from "../inbox/inbox.ts";
import type { Misbehaviour } from "../inbox/misbehaviour.ts";

export interface Providers {
  readonly channels: readonly Channel[];
  /** Undefined where every provider is configured. */
  readonly inbox: Inbox | undefined;
}

const LOCAL_SENDER = "sluice <sluice@localhost>";

export async function openProviders({ providers, limits, users }: Config, misbehave: Misbehaviour): Promise<Providers> {
  const { email, webhook } = providers;
  const secrets = new Map(users.map(({ id, webhook: own }) => [id, own?.secret]));
  const inbox =
    email === undefined || webhook === undefined
      ? await startInbox({ misbehave, secretOf: (user) => secrets.get(user) })
      : undefined;
  const bounds = (channel: string): { maxConnections: number | undefined; timeoutMs: number } => {
    return { maxConnections: limits.concurrency[channel], timeoutMs: limits.attemptTimeoutMs };
  };
  return {
    inbox,
    channels: [
      emailChannel({ ...bounds("email"), ...(email ?? { url: inbox?.smtpUrl ?? "", from: LOCAL_SENDER }) }),
      webhookChannel({
        ...bounds("webhook"),
        ...(webhook ?? { rewrite: ({ user }) => inboxAddress(inbox?.webhookBase ?? "", user.id) }),
      }),
    ],
  };
}
