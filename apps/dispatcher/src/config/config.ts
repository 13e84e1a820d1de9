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
    /** Dotted path into `data` at which a repository is named: reaches those who follow it. */
    readonly followersOf?: string | undefined;
  };
  readonly channels: readonly string[];
  readonly template: string;
  /** @default "defer" */
  readonly overLimit: "defer" | "drop";
}

export interface Limits {
  /** Each user's token bucket over all channels: `count` at once, refilled over `perMs`. @default 5 per minute */
  readonly perUser: { readonly count: number; readonly perMs: number };
  /** Sends under way at once, by channel. @default email 100, webhook 100 */
  readonly concurrency: Readonly<Record<string, number>>;
  /** One attempt. @default 5000 */
  readonly attemptTimeoutMs: number;
  /** From the first attempt to the last; waiting for the limit is not counted. @default 900000 */
  readonly deadlineMs: number;
  /** Attempts after the first. @default 3 */
  readonly retries: number;
  /** Ceiling of the first back-off, doubled with each attempt; full jitter. @default 1000 */
  readonly retryBaseMs: number;
  /** @default 60000 */
  readonly retryMaxMs: number;
  readonly breaker: {
    /** Consecutive failures that open it. @default 5 */
    readonly failures: number;
    /** @default 30000 */
    readonly cooldownMs: number;
  };
  /** How long a dead process's work stays its own. @default 30000 */
  readonly leaseMs: number;
}

export interface Providers {
  /** Left out: the local inbox. */
  readonly email?: { readonly url: string; readonly from: string } | undefined;
  /** Left out: every webhook goes to the local inbox. */
  readonly webhook?: { readonly allowPrivateNetworks: boolean } | undefined;
}

export interface Intake {
  /** Events accepted and not yet expanded. @default 10000 */
  readonly capacity: number;
  /** Of one request body. @default 4 MiB */
  readonly maxBodyBytes: number;
  /** Of one event as JSON. @default 256 KiB */
  readonly maxEventBytes: number;
  /** Events in one batch. @default 1000 */
  readonly maxBatch: number;
  /** Expanding at once. @default 50 */
  readonly expanders: number;
}
