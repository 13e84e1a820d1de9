/** The configuration as the rest of the dispatcher reads it: complete, checked, with every default filled in. */
import type { User } from "../model.ts";

export interface Config {
  readonly users: readonly User[];
  readonly rules: readonly Rule[];
  /** By name, then by channel: the source of each field. */
  readonly templates: Readonly<Record<string, Readonly<Record<string, Readonly<Record<string, string>>>>>>;
  readonly limits: Limits;
  readonly providers: Providers;
  readonly intake: Intake;
}

/** Where two rules bring one event to one user over one channel, the first in file order does it. */
export interface Rule {
  readonly name: string;
  /** All that are given must hold; patterns match whole values, `*` stands for any run of characters. */
  readonly when: {
    readonly source?: readonly string[] | undefined;
    readonly type?: readonly string[] | undefined;
    /** By dotted path into `data`; numbers and booleans match as text. */
    readonly data?: Readonly<Record<string, readonly string[]>> | undefined;
  };
  /** Users who match any of these, each reached once. */
  readonly to: {
    readonly users?: readonly string[] | undefined;
    readonly roles?: readonly string[] | undefined;
    /** Dotted path into `data` at which a repository is named: reaches those who follow it, letter for letter. */
    readonly followersOf?: string | undefined;
  };
  readonly channels: readonly string[];
  readonly template: string;
  /** @default "defer" */
  readonly overLimit: "defer" | "drop";
}

export interface Limits {
  /** Each user's token bucket over all channels: `count` at once (1 to 10^9), refilled over `perMs`. @default 5 per minute */
  readonly perUser: { readonly count: number; readonly perMs: number };
  /** Sends under way at once, by channel: 1 to 10,000. @default 100 each */
  readonly concurrency: Readonly<Record<string, number>>;
  /** One attempt; at most `deadlineMs`. @default 5000 */
  readonly attemptTimeoutMs: number;
  /** From the first attempt to the last; waiting for the limit is not counted. @default 900000 */
  readonly deadlineMs: number;
  /** Attempts after the first: 0 to 100. @default 3 */
  readonly retries: number;
  /** Ceiling of the first back-off, doubled with each attempt; full jitter; at most `retryMaxMs`. @default 1000 */
  readonly retryBaseMs: number;
  /** @default 60000 */
  readonly retryMaxMs: number;
  /** Retries of a channel in the last 10 s, against its first attempts. What exceeds it is put off, not lost. */
  readonly retryBudget: {
    /** Retries that each first attempt allows: 0 to 100. @default 0.2 */
    readonly ratio: number;
    /** That are allowed however few first attempts there are. @default 10 */
    readonly minPerSecond: number;
  };
  readonly breaker: {
    /** Consecutive failures that open it. @default 5 */
    readonly failures: number;
    /** @default 30000 */
    readonly cooldownMs: number;
  };
  /** How long a dead process's work stays its own; at least 100. @default 30000 */
  readonly leaseMs: number;
}

export interface Providers {
  /** Left out: the local inbox. */
  readonly email?: { readonly url: string; readonly from: string } | undefined;
  /** Left out: every webhook goes to the local inbox. */
  readonly webhook?: { readonly allowPrivateNetworks: boolean } | undefined;
}

export interface Intake {
  /** Events accepted and not yet expanded: 1 to 10^9. @default 10000 */
  readonly capacity: number;
  /** Of one request body. @default 4 MiB */
  readonly maxBodyBytes: number;
  /** Of one event as JSON; at most `maxBodyBytes`. @default 256 KiB */
  readonly maxEventBytes: number;
  /** Events in one batch; at most `capacity`. @default 1000 */
  readonly maxBatch: number;
  /** Expanding at once: 1 to 10,000. @default 50 */
  readonly expanders: number;
}
