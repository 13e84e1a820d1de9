import { hash } from "node:crypto";
import type { Event, Planned } from "../model.ts";

/**
 * A notification's name outside: the same for the same event, rule, user and channel, so that expanding an event
 * twice gives nothing new. 22 characters of base64url are 132 bits.
 */
export function publicId(event: Pick<Event, "source" | "id">, { rule, user, channel }: Planned): string {
  const text = JSON.stringify([event.source, event.id, rule, user, channel]);
  return `ntf_${hash("sha256", text, "base64url").slice(0, 22)}`;
}
