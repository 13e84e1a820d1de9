/**
 * What is held and who waits, kept while `enable` is on. It holds on to no primitive, no permit and no wait: what is
 * collected unreleased is known by that.
 */
import type { Clock } from "../clock/clock.ts";
import { hasAsyncContext } from "../internal/async-context.ts";
import type { NamedEntry } from "../internal/names.ts";
import type { Probe } from "../internal/probe.ts";
import type { Task } from "../policy.ts";
import { Activity, currentActivity, inActivity } from "./activity.ts";
import { endWith } from "./end-with.ts";
import { Nesting } from "./nesting.ts";
import { type Subject, subjectOf, titleOf } from "./subject.ts";

/** A permit, a guard or a slot that was given out and not yet given back. */
export interface Hold {
  readonly lender: Lender;
  readonly weight: number;
  readonly takenAt: number;
  /** Where it was asked for. */
  readonly stack: string;
  /** Who has it: undefined outside any activity. */
  by: Activity | undefined;
  /** It is an activity of its own, which is over when this goes back. */
  isOwn: boolean;
  /** Nobody can give it back any more. */
  isCollected: boolean;
}

/** Somebody in a line. */
export interface Waiting {
  readonly lender: Lender;
  readonly since: number;
  readonly stack: string;
  readonly by: Activity | undefined;
}

/** What something that lends, or lets wait, has out now. */
export class Lender {
  readonly subject: Subject;
  readonly target: WeakRef<object>;
  readonly holds: Set<Hold> = new Set();
  readonly waits: Set<Waiting> = new Set();
  /** Who came last, the latest at the end: for what waits until all of its parties have come. */
  readonly parties: Set<Activity> = new Set();

  constructor(target: object) {
    this.subject = subjectOf(target);
    this.target = new WeakRef(target);
  }
}

/** A fan-out, and the largest of all so far. */
export interface FanOut extends Origin {
  readonly width: number;
  readonly depth: number;
}

/** Failures that nobody was told of, of things of one kind and name. */
export interface Unseen {
  readonly subject: Subject;
  readonly count: number;
  readonly last: unknown;
}

/** Of so many names failures are kept: names may be made up as the program goes on. */
const MAX_UNSEEN = 1_000;

interface Origin {
  readonly stack: string;
  readonly by: Activity | undefined;
}

export class Ledger implements Probe {
  // I1  a hold is in its lender's set from `took` to `gaveBack`, a wait from `joined` to `left`
  // I2  nothing in here refers to a target, a permit or a wait but weakly
  /** Of those within a branch of another. */
  widest: FanOut | undefined;
  /** By title, whoever failed last at the end. */
  readonly unseen: Map<string, Unseen> = new Map();
  /** Undefined where the runtime has no async context. */
  readonly nesting: Nesting | undefined = hasAsyncContext() ? new Nesting() : undefined;
  readonly #clock: Clock;
  readonly #stacks: boolean;
  readonly #onJoin: () => void;
  readonly #lenders = new Set<Lender>();
  readonly #byTarget = new WeakMap<object, Lender>();
  readonly #holds = new WeakMap<object, Hold>();
  readonly #waits = new WeakMap<object, Waiting>();
  readonly #goneLenders = new FinalizationRegistry<Lender>((lender) => void this.#lenders.delete(lender));
  readonly #goneHolds = new FinalizationRegistry<Hold>((hold) => void (hold.isCollected = true));

  /** `onJoin` is called for each wait that begins. */
  constructor(clock: Clock, stacks: boolean, onJoin: () => void) {
    this.#clock = clock;
    this.#stacks = stacks;
    this.#onJoin = onJoin;
  }

  /** Those of now, in the order in which they were first seen. */
  lenders(): Lender[] {
    return [...this.#lenders].filter(({ target }) => target.deref() !== undefined);
  }

  took(lender: object, hold: unknown, weight = 1, wait?: object): void {
    if (typeof hold !== "object" || hold === null) return;
    const waiting = wait === undefined ? undefined : this.#waits.get(wait);
    const taken = this.#enter(this.#lender(lender), weight, waiting ?? this.#origin());
    this.#holds.set(hold, taken);
    this.#goneHolds.register(hold, taken, taken);
  }

  gaveBack(hold: object): void {
    const taken = this.#holds.get(hold);
    if (taken === undefined) return;
    this.#goneHolds.unregister(taken);
    taken.lender.holds.delete(taken);
    if (taken.isOwn && taken.by !== undefined) taken.by.isOver = true;
  }

  moved(from: object, to: object): void {
    const taken = this.#holds.get(from);
    if (taken === undefined) return;
    this.#goneHolds.unregister(taken);
    this.#goneHolds.register(to, taken, taken);
    this.#holds.set(to, taken);
    if (taken.by !== undefined) taken.by.isOver = false; // it had only let go for a while
  }

  as<T>(hold: object, fn: () => T): T {
    return inActivity(this.#holds.get(hold)?.by, fn);
  }

  within<T>(hold: object, fn: () => T): T {
    const taken = this.#holds.get(hold);
    if (taken === undefined) return fn();
    taken.by = new Activity();
    taken.isOwn = true;
    return inActivity(taken.by, fn);
  }

  slot<T>(lender: object, fn: Task<T>, weight: number): Task<T> {
    const origin = this.#origin();
    return (context) => {
      const by = new Activity();
      const hold = this.#enter(this.#lender(lender), weight, { ...origin, by });
      return endWith(
        () => {
          hold.lender.holds.delete(hold);
          by.isOver = true;
        },
        () => inActivity(by, () => fn(context)),
      );
    };
  }

  joined(owner: object, wait: object): void {
    const lender = this.#lender(owner);
    const waiting = { lender, since: this.#clock.now(), ...this.#origin() };
    lender.waits.add(waiting);
    this.#waits.set(wait, waiting);
    this.#onJoin();
  }

  left(wait: object): void {
    const waiting = this.#waits.get(wait);
    waiting?.lender.waits.delete(waiting);
  }

  arrived(owner: object, parties: number): void {
    const by = currentActivity();
    if (by === undefined) return;
    const known = this.#lender(owner).parties;
    known.delete(by);
    known.add(by);
    for (const oldest of known) if (known.size > parties) known.delete(oldest);
  }

  /** Over when a promise of the runtime that `fn` returned has settled: any other thenable is its caller's to ask. */
  enter<T>(fn: () => T): T {
    const by = new Activity();
    const onEnd = (): void => void (by.isOver = true);
    const result = inActivity(by, fn);
    return result instanceof Promise && result.constructor === Promise ? (result.finally(onEnd) as T) : result;
  }

  fannedOut(width: number, depth: number): void {
    if (depth > 1 && width > (this.widest?.width ?? 0)) this.widest = { width, depth, ...this.#origin() };
  }

  named(entry: NamedEntry): void {
    this.nesting?.watch(entry);
  }

  /** Something failed, and nobody but who watches hears of it. */
  failed(subject: Subject, error: unknown): void {
    const key = titleOf(subject);
    const count = (this.unseen.get(key)?.count ?? 0) + 1;
    this.unseen.delete(key);
    this.unseen.set(key, { subject, count, last: error });
    for (const oldest of this.unseen.keys()) if (this.unseen.size > MAX_UNSEEN) this.unseen.delete(oldest);
  }

  #lender(target: object): Lender {
    let lender = this.#byTarget.get(target);
    if (lender !== undefined) return lender;
    lender = new Lender(target);
    this.#byTarget.set(target, lender);
    this.#lenders.add(lender);
    this.#goneLenders.register(target, lender);
    return lender;
  }

  #enter(lender: Lender, weight: number, { stack, by }: Origin): Hold {
    const hold = { lender, weight, takenAt: this.#clock.now(), stack, by, isOwn: false, isCollected: false };
    lender.holds.add(hold);
    return hold;
  }

  #origin(): Origin {
    return { stack: this.#stacks ? callers() : "", by: currentActivity() };
  }
}

/**
 * Where the program called us: our own frames say nothing to whoever looks for a leak. In a bundle they stay. It is made
 * at once, though only reports need it, since an error whose stack nobody has read keeps all alive that is on it (I2).
 */
function callers(): string {
  const { stack = "" } = new Error("callers");
  const folder = /([^\s()@]*\/)observe\/ledger\.[jt]s/.exec(stack)?.[1];
  const lines = stack.split("\n").slice(1);
  const foreign = lines.filter((line) => folder === undefined || !line.includes(folder) || PROGRAM.test(line));
  return foreign.map((line) => line.trim()).join("\n");
}

/** What lies beside the sources, and isn't ours when it calls us. */
const PROGRAM = /\.(?:test|example|bench)\.ts/;
