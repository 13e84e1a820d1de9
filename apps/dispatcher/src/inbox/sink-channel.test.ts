// That it is a channel like the others is shown in channels/conformance.test.ts.
import { expect, it } from "vitest";
import { type Message, SendError } from "../channels/channel.ts";
import { sinkChannel } from "./sink-channel.ts";

const signal = new AbortController().signal;
const user = { id: "user-001", email: "user-001@example.com", roles: [], repositories: [] };
const message: Message = { id: "n-1", user, address: user.email, content: {} };

it("takes everything in the turn of the call, and counts", async () => {
  const sink = sinkChannel("webhook");
  const sent = sink.send(message, { signal });
  expect(sink.stats()).toEqual({ sent: 1, failed: 0, aborted: 0 });
  expect(await sent).toEqual({ answer: "taken" });
});

it("passes on what its provider throws, now or later, and counts it apart from aborts", async () => {
  const refusal = new SendError("no", { kind: "permanent", providerFault: false });
  const attempt = new AbortController();
  const answers = [
    (): never => {
      throw refusal;
    },
    () => Promise.reject(refusal),
    () => new Promise<never>(() => attempt.abort(new Error("time is up"))),
  ];
  const sink = sinkChannel("email", { answer: () => answers.shift()?.() ?? { answer: "taken" } });
  await expect(sink.send(message, { signal })).rejects.toBe(refusal);
  await expect(sink.send(message, { signal })).rejects.toBe(refusal);
  await expect(sink.send(message, { signal: attempt.signal })).rejects.toBe(attempt.signal.reason);
  expect(sink.stats()).toEqual({ sent: 0, failed: 2, aborted: 1 });
});

it("stands for a channel that exists", () => {
  expect(sinkChannel("email").fields.required).toEqual(["subject", "text"]);
  expect(() => sinkChannel("pigeon")).toThrow(new RangeError('name must be email or webhook, got "pigeon"'));
});
