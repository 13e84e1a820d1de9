/**
 * E-mail over SMTP, through nodemailer's pool of connections. A message has one Message-ID over all its attempts, so a
 * mailbox can tell a repetition. An abort ends the connection it is being sent over, and so frees its place.
 */
import { createTransport, type Transporter } from "nodemailer";
import parseAddresses from "nodemailer/lib/addressparser";
import { type Channel, type Message, type Receipt, SendError } from "./channel.ts";
import { checkInteger } from "./check.ts";
import { emailForm } from "./forms.ts";
import { oneLine } from "./one-line.ts";
import { fromSmtp } from "./smtp-answer.ts";

export interface EmailOptions {
  /**
   * `smtp://user:password@host:port`, or `smtps:` for TLS from the start. Its query takes nodemailer's connection
   * options. Credentials are sent over TLS only, except to this machine, unless it says `requireTLS=false`.
   */
  readonly url: string;
  /** The sender, `address` or `name <address>`; its domain ends the Message-IDs. */
  readonly from: string;
  /** At once; whoever finds all of them busy waits, on the time of its attempt. @default 100 */
  readonly maxConnections?: number | undefined;
  /** Longest silence of the server, and longest time until it has greeted. @default 5000 */
  readonly timeoutMs?: number | undefined;
  /**
   * Connections that one send may lose before a byte of its message went out and still get another one, a fraction of
   * a second later. One, because a server may hang up on a connection in the moment it is used again. @default 1
   */
  readonly maxReconnects?: number | undefined;
}

export interface EmailStats {
  /** Sends that are neither done nor given up. */
  readonly busy: number;
  readonly sent: number;
  readonly failed: number;
  readonly aborted: number;
}

export interface EmailChannel extends Channel {
  stats(): EmailStats;
}

export function emailChannel(options: EmailOptions): EmailChannel {
  return new SmtpChannel(options);
}

class SmtpChannel implements EmailChannel {
  readonly name: string = emailForm.name;
  readonly fields: Channel["fields"] = emailForm.fields;
  readonly escape: Channel["escape"] = emailForm.escape;
  readonly addressOf: Channel["addressOf"] = emailForm.addressOf;
  readonly #provider: string;
  readonly #from: string;
  readonly #sender: string;
  readonly #transport: Transporter;
  #closed = false;
  #busy = 0;
  #sent = 0;
  #failed = 0;
  #aborted = 0;

  constructor({ url, from, maxConnections = 100, timeoutMs = 5_000, maxReconnects = 1 }: EmailOptions) {
    const server = checkUrl(url);
    this.#provider = server.host;
    this.#from = from;
    this.#sender = checkSender(from);
    this.#transport = createTransport({
      pool: true,
      requireTLS: server.username !== "" && !LOOPBACK.test(server.hostname),
      url,
      maxConnections: checkInteger("maxConnections", maxConnections, 1),
      maxMessages: 1_000, // now and then a new connection, since the name may lead to another machine by then
      maxRequeues: checkInteger("maxReconnects", maxReconnects, 0),
      connectionTimeout: checkInteger("timeoutMs", timeoutMs, 1), // until it has greeted
      dnsTimeout: timeoutMs,
      socketTimeout: timeoutMs,
      socketCloseTimeout: 0, // what an abort ends may not finish in the background
      disableFileAccess: true,
      disableUrlAccess: true,
    });
  }

  stats(): EmailStats {
    return { busy: this.#busy, sent: this.#sent, failed: this.#failed, aborted: this.#aborted };
  }

  providerOf(_address: string): string {
    return this.#provider;
  }

  async send({ id, address, content }: Message, { signal }: { readonly signal: AbortSignal }): Promise<Receipt> {
    signal.throwIfAborted();
    if (this.#closed) throw closed();
    if (!MAILBOX.test(address)) {
      throw new SendError(`not an e-mail address: ${JSON.stringify(address)}`, PERMANENT);
    }
    const { subject, text, html } = content;
    this.#busy += 1;
    try {
      const info = await this.#transport.sendMail({
        messageId: `<${id}@${this.#sender.slice(this.#sender.lastIndexOf("@") + 1)}>`,
        from: this.#from,
        to: { name: "", address },
        headers: { "Auto-Submitted": "auto-generated" }, // RFC 3834: nobody's absence notice answers it
        xMailer: false,
        subject,
        text,
        ...(html !== undefined && { html }),
        signal,
      });
      this.#sent += 1;
      return { answer: oneLine(info.response ?? "taken") };
    } catch (error) {
      if ((error as { code?: unknown }).code === "EABORT") {
        this.#aborted += 1;
        throw signal.reason;
      }
      this.#failed += 1;
      throw this.#closed ? closed(error) : fromSmtp(error);
    } finally {
      this.#busy -= 1;
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#transport.close({ force: true });
  }
}

const PERMANENT = { kind: "permanent", providerFault: false } as const;
const LOOPBACK = /^(localhost|127\.[\d.]+|\[::1\])$/;
/** No quoted local parts and no comments: nothing in which a list of addresses, or a command, could hide. */
const MAILBOX = /^[^\s\p{C}<>()[\]\\,;:"@]+@[^\s\p{C}<>()[\]\\,;:"@]+$/u;

function closed(cause?: unknown): SendError {
  return new SendError("the email channel is closed", { kind: "transient", providerFault: false }, { cause });
}

function checkUrl(text: string): URL {
  const url = URL.parse(text);
  if (url !== null && /^smtps?:$/.test(url.protocol) && url.hostname !== "") return url;
  throw new RangeError(`url must be smtp://host or smtps://host, got ${JSON.stringify(text)}`);
}

/** The address alone. */
function checkSender(from: string): string {
  const [mailbox, ...others] = parseAddresses(from, { flatten: true });
  if (mailbox !== undefined && others.length === 0 && MAILBOX.test(mailbox.address)) return mailbox.address;
  throw new RangeError(`from must be one e-mail address, got ${JSON.stringify(from)}`);
}
