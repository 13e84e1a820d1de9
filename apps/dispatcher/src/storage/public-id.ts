import { hash } from "node:crypto";
import type { Event, Planned } from "../model.ts";

/**
 * A notification's name outside: the same for the same accepted event, rule, user and channel, so that expanding an
 * event twice gives nothing new. It begins with the event's row, so that new ids lie side by side in their index: with
 * a hash alone each would cost a page of its own. 15 characters of base64url are 90 bits.
 */
export function publicId(row: number, { source, id }: Event, { rule, user, channel }: Planned): string {
  const digest = hash("sha256", JSON.stringify([source, id, rule, user, channel]), "base64url");
  return `ntf_${row.toString(36).padStart(7, "0")}${digest.slice(0, 15)}`;
}
