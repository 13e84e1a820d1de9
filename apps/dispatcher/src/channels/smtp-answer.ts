/** What a failed send over SMTP means: for this message, and for the server. */
import { SendError } from "./channel.ts";
import { oneLine } from "./one-line.ts";

/** As nodemailer fills it in. */
interface SmtpFailure {
  readonly message: string;
  readonly code?: string | undefined;
  /** The server's answer, and its number. */
  readonly response?: string | undefined;
  readonly responseCode?: number | undefined;
  readonly command?: string | undefined;
}

/** There was no session, or it broke: says nothing about the message, so the provider may yet take it. */
const SESSION = new Set(
  "ECONNECTION ETIMEDOUT ESOCKET EDNS ETLS EREQUIRETLS EPROTOCOL EAUTH ENOAUTH EOAUTH2 EPROXY".split(" "),
);
/** The server wants us, not the message, to prove something (RFC 4954): so does whoever comes next. */
const AUTHENTICATION = new Set([530, 534, 535, 538]);
/** Bad sequence of commands: the session was in a wrong state, and the next one may not be. */
const BAD_SEQUENCE = 503;
/** Mailbox busy or greylisted (RFC 5321, 4.2.3), which speaks of one recipient; other 4yz speak of the server. */
const MAILBOX_BUSY = 450;

export function fromSmtp(error: unknown): SendError {
  const { message, code = "", response, responseCode = 0, command } = error as SmtpFailure;
  const answer = oneLine(response ?? message);
  const fail = (kind: "transient" | "permanent", providerFault: boolean): SendError =>
    new SendError(answer, { kind, providerFault }, { cause: error });

  if (SESSION.has(code) || AUTHENTICATION.has(responseCode)) return fail("transient", true);
  if (responseCode >= 500 && responseCode !== BAD_SEQUENCE) {
    // A sender that is refused is refused for every message: the breaker keeps the others from dying of it.
    return fail("permanent", command === "MAIL FROM");
  }
  if (responseCode >= 400) return fail("transient", responseCode !== MAILBOX_BUSY);
  return fail("permanent", false); // it never left: this message can't be written as mail
}
