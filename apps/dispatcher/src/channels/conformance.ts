/** What every channel must do, as data: each case runs against a channel of its own and a provider told what to do. */
import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import type { Content } from "../model.ts";
import { type Channel, type Message, SendError } from "./channel.ts";

/** What the provider does with a message: takes it, refuses it for good, fails, hangs up on it, or never answers. */
export type ProviderBehaviour = "take" | "refuse" | "fail" | "hang up" | "hang";

export interface Arrival {
  readonly id: string;
  readonly to: string;
  readonly content: Content;
}

export interface ChannelHarness {
  readonly channel: Channel;
  /** Sends over a single connection, one message at a time; else within the process, all at once and as they are. */
  readonly hasWire: boolean;
  /** For a user whom the channel reaches; fields that are left out are filled in. */
  readonly message: (id: string, content?: Content) => Message;
  /** From the next message on; `take` at first. */
  readonly behave: (behaviour: ProviderBehaviour) => void;
  /** The message that reached the provider as number `index`, from 0, once it has. */
  readonly arrival: (index: number) => Promise<Arrival>;
  readonly arrivals: () => number;
  /** Resolves when the provider sees no connection any more. */
  readonly disconnected: () => Promise<void>;
}

export interface ChannelCase {
  readonly title: string;
  readonly run: (harness: ChannelHarness) => Promise<void>;
}

const never = (): AbortSignal => new AbortController().signal;

export const channelCases: readonly ChannelCase[] = [
  {
    title: "gives every attempt of a message the same id",
    async run({ channel, message, behave, arrival }) {
      behave("fail");
      await assert.rejects(channel.send(message("n-1"), { signal: never() }), SendError);
      behave("take");
      const { answer } = await channel.send(message("n-1"), { signal: never() });
      assert.notEqual(answer, "");
      assert.deepEqual([(await arrival(0)).id, (await arrival(1)).id], ["n-1", "n-1"]);
    },
  },
  {
    title: "rejects with the abort's reason when the provider never answers, and has its place free again",
    async run({ channel, message, behave, arrival }) {
      behave("hang");
      const attempt = new AbortController();
      const sent = settled(channel.send(message("slow"), { signal: attempt.signal }));
      await arrival(0);
      const reason = new Error("five seconds are over");
      attempt.abort(reason);
      assert.equal(await sent, reason);
      behave("take");
      await channel.send(message("next"), { signal: never() });
      assert.equal((await arrival(1)).id, "next");
    },
  },
  {
    title: "gives up a message that waits for a place, and never sends it",
    async run({ channel, hasWire, message, behave, arrival, arrivals }) {
      behave("hang");
      const first = new AbortController();
      const second = new AbortController();
      const ahead = settled(channel.send(message("ahead"), { signal: first.signal }));
      await arrival(0);
      const waiting = settled(channel.send(message("waiting"), { signal: second.signal }));
      const reason = new Error("enough");
      second.abort(reason);
      assert.equal(await waiting, reason);
      first.abort(reason);
      assert.equal(await ahead, reason);
      behave("take");
      await channel.send(message("last"), { signal: never() });
      const ids = hasWire ? ["ahead", "last"] : ["ahead", "waiting", "last"];
      assert.equal(arrivals(), ids.length);
      assert.deepEqual(await Promise.all(ids.map(async (_, index) => (await arrival(index)).id)), ids);
    },
  },
  {
    title: "sends nothing with an aborted signal",
    async run({ channel, message, arrivals }) {
      const reason = new Error("too late");
      assert.equal(await settled(channel.send(message("n-1"), { signal: AbortSignal.abort(reason) })), reason);
      assert.equal(arrivals(), 0);
    },
  },
  {
    title: "leaves no listener on the signal, whatever comes of the attempt",
    async run({ channel, message, behave }) {
      for (const behaviour of ["take", "refuse", "fail", "hang up"] as const) {
        behave(behaviour);
        const signal = never();
        await settled(channel.send(message(behaviour), { signal }));
        assert.equal(getEventListeners(signal, "abort").length, 0, behaviour);
      }
    },
  },
  {
    title: "calls a refused message permanent and not the provider's fault, and says what the provider said",
    async run({ channel, message, behave, arrivals }) {
      behave("refuse");
      const { kind, providerFault, retryAfterMs, message: said } = await failure(channel, message("n-1"));
      assert.deepEqual([kind, providerFault, retryAfterMs], ["permanent", false, undefined]);
      assert.match(said, /no such/);
      assert.equal(arrivals(), 1);
    },
  },
  {
    title: "calls a failing provider and a lost connection transient and the provider's fault",
    async run({ channel, message, behave, arrivals }) {
      for (const behaviour of ["fail", "hang up"] as const) {
        behave(behaviour);
        const { kind, providerFault } = await failure(channel, message("n-1"));
        assert.deepEqual([kind, providerFault], ["transient", true], behaviour);
      }
      assert.equal(arrivals(), 2); // a message that may have been taken is nobody's to repeat but the caller's
    },
  },
  {
    title: "has no address for a user who has none",
    async run({ channel }) {
      assert.equal(channel.addressOf({ id: "nobody", roles: [], repositories: [] }), undefined);
    },
  },
  {
    title: "refuses to escape for a field it doesn't have",
    async run({ channel }) {
      assert.throws(() => channel.escape("nowhere", "x"), RangeError);
    },
  },
  {
    title: "delivers hostile content as content, to its user alone",
    async run({ channel, message, arrival }) {
      const { required, optional, formats = {} } = channel.fields;
      const fields = [...required, ...optional];
      const escaped = (field: string): string => {
        const value = channel.escape(field, HOSTILE);
        return formats[field] === "json" ? `{"note":"${value}"}` : value;
      };
      const content = Object.fromEntries(fields.map((field) => [field, escaped(field)]));
      const hostile = message("hostile", content);
      await channel.send(hostile, { signal: never() });
      const { id, to, content: arrived } = await arrival(0);
      assert.deepEqual([id, to], ["hostile", hostile.user.id]);
      assert.deepEqual(arrived, content);
      for (const field of fields) {
        const text = arrived[field] ?? "";
        if (formats[field] === "json") assert.deepEqual(JSON.parse(text), { note: HOSTILE.toWellFormed() });
        if (formats[field] === "line") assert.doesNotMatch(text, /[\p{Cc}\u2028\u2029]/u);
        if (field === "html") assert.doesNotMatch(text, /[<>"']/);
      }
    },
  },
  {
    title: "keeps what nobody escaped from becoming a header or another recipient",
    async run({ channel, hasWire, message, arrival }) {
      const { required, formats = {} } = channel.fields;
      const lines = required.filter((field) => formats[field] === "line");
      const hostile = message("raw", Object.fromEntries(lines.map((field) => [field, HOSTILE])));
      await channel.send(hostile, { signal: never() });
      const { id, to, content } = await arrival(0);
      assert.deepEqual([id, to], ["raw", hostile.user.id]);
      for (const field of lines) assert.equal(/[\r\n]/.test(content[field] ?? ""), !hasWire);
    },
  },
  {
    title: "ends its connections when closed, closes twice, and sends nothing afterwards",
    async run({ channel, message, arrivals, disconnected }) {
      await channel.send(message("n-1"), { signal: never() });
      await Promise.all([channel.close(), channel.close()]);
      await disconnected();
      const { kind, providerFault } = await failure(channel, message("n-2"));
      assert.deepEqual([kind, providerFault, arrivals()], ["transient", false, 1]);
    },
  },
  {
    title: "ends what still runs when closed",
    async run({ channel, message, behave, arrival, disconnected }) {
      behave("hang");
      const running = failure(channel, message("running"));
      await arrival(0);
      const waiting = failure(channel, message("waiting"));
      await channel.close();
      for (const { kind, providerFault } of await Promise.all([running, waiting])) {
        assert.deepEqual([kind, providerFault], ["transient", false]);
      }
      await disconnected();
    },
  },
];

/** Ends a header, a JSON string, a tag, an attribute, a mail; half a character, a bell, an invisible line end. */
const HOSTILE =
  "Grüße 🌍 \"}\r\nBcc: other@example.com\r\n\r\n.\r\nQUIT\r\n</p><script>alert('x')</script>&amp; \u0007\u2028 =?utf-8?Q?x?= {{ id }} \ud800 end";

/** The reason of the rejection; undefined if it was none. */
function settled(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
}

async function failure(channel: Channel, message: Message): Promise<SendError> {
  const reason = await settled(channel.send(message, { signal: never() }));
  if (reason instanceof SendError) return reason;
  throw new assert.AssertionError({ message: `not a SendError: ${String(reason)}`, actual: reason });
}
