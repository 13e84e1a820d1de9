/** The queues of jobs: one of events, and one for each channel, so that a slow channel takes nothing from another. */
export const EXPAND_QUEUE = "expand";

export function channelQueue(channel: string): string {
  return `channel:${channel}`;
}

/** The notification's own count decides when it is dead, so its job must never be the first to give up. */
export const MAX_JOB_ATTEMPTS = 1_000_000;
