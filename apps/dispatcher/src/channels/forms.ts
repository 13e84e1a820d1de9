/** The channels that exist, as far as they can be known without opening one. */
import type { ChannelForm } from "./channel.ts";

export const emailForm: ChannelForm = {
  name: "email",
  fields: {
    required: ["subject", "text"],
    optional: ["html"],
    formats: { subject: "line" },
  },
  escape(field, value) {
    switch (field) {
      case "subject":
        return value.toWellFormed().replaceAll(CONTROLS, " ");
      case "text":
        return visible(value);
      case "html":
        return visible(value).replaceAll(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
      default:
        throw unknownField("email", field);
    }
  },
  addressOf: (user) => user.email,
};

export const webhookForm: ChannelForm = {
  name: "webhook",
  fields: { required: ["body"], optional: [], formats: { body: "json" } },
  /** For use between the quotes of a JSON string. */
  escape(field, value) {
    if (field !== "body") throw unknownField("webhook", field);
    return JSON.stringify(value.toWellFormed()).slice(1, -1);
  },
  addressOf: (user) => user.webhook?.url,
};

/** By name. */
export const channelForms: ReadonlyMap<string, ChannelForm> = new Map(
  [emailForm, webhookForm].map((form) => [form.name, form]),
);

/** What ends a header, or a line in some reader's eyes. */
const CONTROLS = /[\p{Cc}\u2028\u2029]+/gu;

/** Line ends and tabs are text; other control characters are instructions to somebody's terminal. */
function visible(value: string): string {
  return value
    .toWellFormed()
    .replaceAll(/\r\n?/g, "\n")
    .replaceAll(/[^\P{Cc}\n\t]/gu, "");
}

function unknownField(channel: string, field: string): RangeError {
  return new RangeError(`field must be one of the ${channel} channel's, got ${JSON.stringify(field)}`);
}
