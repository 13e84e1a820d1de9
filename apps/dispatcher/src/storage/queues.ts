/** The queues of jobs: one of events, and one for each channel, so that a slow channel takes nothing from another. */
import type { Json, NewJob } from "@sluice/jobs";

export const EXPAND_QUEUE = "expand";

export function channelQueue(channel: string): string {
  return `channel:${channel}`;
}

/** The payload of an event's job is its row. */
export function expandJob(event: number): NewJob {
  return { queue: EXPAND_QUEUE, payload: event, maxAttempts: MAX_ATTEMPTS };
}

/**
 * What a notification's job is for. Each redrive begins a round with a job of its own, and only the job of the present
 * round may move the notification: one that the store had put aside before stays harmless.
 */
export interface Round {
  /** Its row. */
  readonly notification: number;
  /** 0 for the first. */
  readonly round: number;
}

export function notificationJob(channel: string, { notification, round }: Round): NewJob {
  return { queue: channelQueue(channel), payload: { notification, round }, maxAttempts: MAX_ATTEMPTS };
}

export function roundOf(payload: Json): Round {
  return payload as unknown as Round;
}

/** The notification's own counts decide when it is dead, so its job must never be the first to give up. */
const MAX_ATTEMPTS = 1_000_000;
