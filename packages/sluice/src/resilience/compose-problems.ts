/** Orders of policies in which one defeats another. */
import { nameOf } from "../internal/names.ts";
import type { Policy } from "../policy.ts";

export type ComposeRule =
  | "slot-held-while-waiting"
  | "retries-multiply"
  | "breaker-outside-retry"
  | "rate-outside-retry"
  | "fallback-inside"
  | "slot-shared-by-hedge"
  | "slot-freed-early"
  | "timeout-never-reached"
  | "same-limit-twice";

export interface ComposeProblem {
  readonly rule: ComposeRule;
  /** Number in `docs/failure-modes.md`, or of the case or table it stands in. */
  readonly failureMode: string;
  /** Kinds of the two layers, with the places they have from the outside in, from 0 on. */
  readonly outer: string;
  readonly inner: string;
  readonly outerIndex: number;
  readonly innerIndex: number;
  /** What comes of it, and what to do instead. */
  readonly evidence: string;
  readonly remedy: string;
}

interface Rule {
  readonly rule: ComposeRule;
  readonly failureMode: string;
  readonly outer: ReadonlySet<string>;
  readonly inner: ReadonlySet<string>;
  /** What else has to hold. */
  readonly when?: ((outer: Policy, inner: Policy) => boolean) | undefined;
  readonly evidence: string;
  readonly remedy: string;
}

const SLOTS: ReadonlySet<string> = new Set(["semaphore", "mutex", "limiter", "adaptive-limiter"]);
const RETRY: ReadonlySet<string> = new Set(["retry"]);
const REPEATS: ReadonlySet<string> = new Set(["retry", "hedge", "failover"]);
const TIMEOUT: ReadonlySet<string> = new Set(["timeout"]);

const RULES: readonly Rule[] = [
  {
    rule: "slot-held-while-waiting",
    failureMode: "F10.5",
    outer: SLOTS,
    inner: RETRY,
    evidence: "keeps its slot while the retry waits for its next attempt",
    remedy: "put the limit inside the retry",
  },
  {
    rule: "retries-multiply",
    failureMode: "F05.4",
    outer: RETRY,
    inner: REPEATS,
    evidence: "repeats what is repeated already, and the attempts multiply",
    remedy: "repeat at one layer, the one nearest the call, or share a retry budget",
  },
  {
    rule: "breaker-outside-retry",
    failureMode: "C099",
    outer: new Set(["circuit-breaker"]),
    inner: RETRY,
    evidence: "counts one failure for all attempts of a call, and stops none of them when it opens",
    remedy: "put the breaker inside the retry",
  },
  {
    rule: "rate-outside-retry",
    failureMode: "J01",
    outer: new Set(["rate-limiter"]),
    inner: REPEATS,
    evidence: "counts a call once, however many attempts are made",
    remedy: "put the rate inside, where each attempt takes from it",
  },
  {
    rule: "fallback-inside",
    failureMode: "F02.4",
    outer: new Set(["retry", "circuit-breaker", "hedge", "failover"]),
    inner: new Set(["fallback"]),
    evidence: "never hears of the failures that the fallback answers for",
    remedy: "put the fallback outermost",
  },
  {
    rule: "slot-shared-by-hedge",
    failureMode: "F10.4",
    outer: SLOTS,
    inner: new Set(["hedge", "failover"]),
    evidence: "lets a call in for one slot that makes several at once",
    remedy: "put the limit inside, where each attempt takes a slot",
  },
  {
    rule: "slot-freed-early",
    failureMode: "C112",
    outer: SLOTS,
    inner: TIMEOUT,
    when: (_, inner) => !("mode" in inner && inner.mode === "cooperative"),
    evidence: "has its slot back when the timeout answers, though work that ignores its signal goes on",
    remedy: 'put the timeout outside the limit, or have it wait for its work: `mode: "cooperative"`',
  },
  {
    rule: "timeout-never-reached",
    failureMode: "J45",
    outer: TIMEOUT,
    inner: TIMEOUT,
    when: (outer, inner) => limitOf(inner) >= limitOf(outer),
    evidence: "ends the call before the inner timeout can",
    remedy: "give one attempt less time than the whole call",
  },
  {
    rule: "same-limit-twice",
    failureMode: "F02.2",
    outer: SLOTS,
    inner: SLOTS,
    when: (outer, inner) => outer === inner,
    evidence: "is the same as the inner one: calls that hold a slot wait for another of it",
    remedy: "take each limit once",
  },
];

export function findProblems(layers: readonly Policy[]): ComposeProblem[] {
  return layers.flatMap((outer, outerIndex) =>
    layers.slice(outerIndex + 1).flatMap((inner, further) => judge(outer, inner, outerIndex, outerIndex + 1 + further)),
  );
}

/** As the policy calls itself, or by its class where that says it. */
export function kindOf(policy: Policy): string {
  const kind = nameOf(policy)?.kind ?? ("kind" in policy ? policy.kind : undefined);
  if (typeof kind === "string") return kind;
  return policy.constructor.name.replaceAll(/(?<=.)(?=[A-Z])/g, "-").toLowerCase();
}

function judge(outer: Policy, inner: Policy, outerIndex: number, innerIndex: number): ComposeProblem[] {
  const [outerKind, innerKind] = [kindOf(outer), kindOf(inner)];
  return RULES.filter(
    (each) =>
      each.outer.has(outerKind) && each.inner.has(innerKind) && (each.when === undefined || each.when(outer, inner)),
  ).map(({ rule, failureMode, evidence, remedy }) => ({
    rule,
    failureMode,
    outer: outerKind,
    inner: innerKind,
    outerIndex,
    innerIndex,
    evidence: `${outerKind} around ${innerKind}: it ${evidence}`,
    remedy,
  }));
}

function limitOf(policy: Policy): number {
  return "timeoutMs" in policy && typeof policy.timeoutMs === "number" ? policy.timeoutMs : Number.NaN;
}
