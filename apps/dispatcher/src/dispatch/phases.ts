/**
 * Tells the diagnostics channel `sluice.dispatcher` what the dispatcher is in the middle of, for tracing and for drills.
 * Costs one comparison while nobody listens.
 */
import { channel } from "node:diagnostics_channel";

export type Phase =
  /** Events have gone to the store, and their sender has no answer yet. */
  | "intake"
  /** A job has been claimed, and nothing has been done about it. */
  | "claim"
  /** The intent is durable, and the provider is about to be asked. */
  | "send"
  /** The outcome has gone to the store, and isn't known to be durable. */
  | "settle";

const phases = channel("sluice.dispatcher");

export function enter(phase: Phase): void {
  if (phases.hasSubscribers) phases.publish({ phase });
}
