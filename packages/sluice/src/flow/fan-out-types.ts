/** What a fan-out is made of, and what it tells of each branch. */
import type { RunContext } from "../policy.ts";

export interface BranchContext extends RunContext {
  /** Aborts when the branch's answer is no longer wanted: at its limit, at the deadline, when a required one failed. */
  readonly signal: AbortSignal;
}

export type BranchFunction<T = unknown> = (context: BranchContext) => T | PromiseLike<T>;

/** The whole fails if it fails. */
export interface RequiredBranch<T = unknown> {
  readonly run: BranchFunction<T>;
  readonly optional?: false | undefined;
  readonly fallback?: undefined;
  /** It counts as failed after this long. At least 1. @default Infinity */
  readonly timeoutMs?: number | undefined;
}

/** The whole does without it if it fails. */
export interface OptionalBranch<T = unknown, F = unknown> {
  readonly run: BranchFunction<T>;
  readonly optional: true;
  /** What it gives if it fails. @default undefined */
  readonly fallback?: F | undefined;
  /** It counts as failed after this long. At least 1. @default Infinity */
  readonly timeoutMs?: number | undefined;
}

/** A function is a required branch without a limit of its own. */
export type Branch = BranchFunction | RequiredBranch | OptionalBranch;

export type Branches = Readonly<Record<string, Branch>>;

export type BranchValues<B extends Branches> = { -readonly [K in keyof B]: BranchValue<B[K]> };

type BranchValue<B extends Branch> = B extends (context: BranchContext) => infer R
  ? Awaited<R>
  : B extends { readonly run: (context: BranchContext) => infer R }
    ? Awaited<R> | (B extends { readonly optional: true } ? Fallback<B> : never)
    : never;

type Fallback<B> = B extends { readonly fallback: infer F } ? Widened<F> : undefined;

/** `[]` for an empty list is a list of anything: of what the branch gives. */
type Widened<F> = F extends readonly never[] ? never : F;

export type BranchReport = Readonly<{
  status: "succeeded" | "failed" | "timed-out";
  durationMs: number;
  /** Of one that did not succeed. */
  error: unknown;
}>;
