/**
 * What each function that takes a `signal` promises, as cases for any test runner:
 * `for (const { title, run } of abortCases(subject)) it(title, run);`
 */
import type { WaitOptions } from "../policy.ts";
import { templates } from "./abort-cases.ts";
import { type AbortStage, seen } from "./abort-stage.ts";
import { turn } from "./turn.ts";
import { VirtualClock } from "./virtual-clock.ts";

export interface AbortSubject {
  /** Opens the titles: `Semaphore.acquire`. */
  readonly name: string;
  /** A scene for one case. Whatever runs `timeoutMs`, or is waited for, is on `clock`. */
  open(clock: VirtualClock): AbortScene;
  /** What the subject doesn't do, and why. Cases that need it are replaced by what holds instead. */
  readonly lacks?: AbortLacks | undefined;
}

export interface AbortLacks {
  /** It takes no `timeoutMs`, or has no use for it: one that is given makes no difference. */
  readonly timeoutMs?: string | undefined;
  /** It calls `fn` at once, and hands the signal on: an abort meanwhile is for `fn` to act on. */
  readonly waiting?: string | undefined;
}

export interface AbortScene {
  /** Calls the subject. The call doesn't settle before `satisfy`. */
  call(options: WaitOptions): Promise<unknown>;
  /**
   * Lets the oldest call that waits succeed; without one, the next call needn't wait, where the subject remembers. If
   * that takes time to pass, more than 250 ms and less than 10 s.
   */
  satisfy(): unknown;
  /** What every call that got nothing must leave as it was: places in line, permits, items. */
  state(): Readonly<Record<string, number>>;
  /** Undoes what a call that succeeded has taken. */
  giveBack?(value: unknown): void;
}

export interface AbortCase {
  readonly title: string;
  readonly run: () => Promise<void>;
}

export function abortCases(subject: AbortSubject): AbortCase[] {
  const { name, lacks = {} } = subject;
  const wanted = templates.filter(({ needs, insteadOf }) => {
    const missing = needs !== undefined && lacks[needs] !== undefined;
    return !missing && (insteadOf === undefined || lacks[insteadOf] !== undefined);
  });
  return wanted.map(({ title, insteadOf, run }) => {
    const why = insteadOf === undefined ? "" : ` (${lacks[insteadOf]})`;
    return { title: `${name} ${title}${why}`, run: () => stage(subject).then(run) };
  });
}

async function stage(subject: AbortSubject): Promise<AbortStage> {
  const [clock, other] = [new VirtualClock(), new VirtualClock()];
  const model = subject.open(other);
  await model.satisfy();
  await turn();
  return { scene: subject.open(clock), clock, satisfied: seen(model, other) };
}
