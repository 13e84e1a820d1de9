/** One run of a scenario under one schedule: what can happen next is collected, and somebody else picks. */
import { checkString, wrongType } from "../../internal/check.ts";
import type { Random } from "../../internal/random.ts";
import { seededRandom } from "../seeded-random.ts";
import { ExploreClock } from "./explore-clock.ts";
import type { ExploreFinding } from "./explore-error.ts";
import type { ExploreActor, ExploreStage, Scenario, StepWork } from "./scenario.ts";

/** Told what can happen next, the one who went last first; says which. */
export type Pick = (keys: readonly string[], depth: number) => number;

export interface Run {
  readonly outcome: "passed" | "cut" | ExploreFinding;
  readonly decisions: readonly Decision[];
  /** How often another one went on than who went last. */
  readonly switches: number;
}

export interface Decision {
  readonly keys: readonly string[];
  readonly picked: number;
}

/** `maxSteps`: where the run is cut. */
export function runOnce(scenario: Scenario, pick: Pick, seed: number, maxSteps: number): Promise<Run> {
  return new Stage(pick, seed, maxSteps).play(scenario);
}

interface Actor {
  readonly name: string;
  readonly order: number;
  isPending: boolean;
  readonly isBackground: boolean;
}

interface Ready {
  readonly actor: Actor;
  readonly key: string;
  readonly perform: (line: Line) => void;
}

interface Line {
  readonly key: string;
  result: string | undefined;
}

class Stage implements ExploreStage {
  // I1  a step is in #ready from its announcement until it is picked; nothing else goes on but what a picked one set off
  // I2  a run passes when all actors have ended and no step of theirs is left, whoever waits for it
  readonly clock = new ExploreClock();
  readonly random: Random;
  readonly #pick: Pick;
  readonly #maxSteps: number;
  readonly #scenario: Actor = { name: "", order: 0, isPending: true, isBackground: false };
  readonly #actors = [this.#scenario];
  readonly #time: Actor = { name: "", order: Infinity, isPending: false, isBackground: true };
  readonly #invariants: { readonly label: string; readonly check: () => unknown }[] = [];
  readonly #decisions: Decision[] = [];
  readonly #lines: Line[] = [];
  #ready: Ready[] = [];
  #last = this.#scenario;
  #switches = 0;
  /** Whether a choice would have been one step too many: what throws after it is no failure. */
  #isCut = false;
  /** What the pick threw. */
  #refusal: unknown;
  #failure: { readonly why: string; readonly cause: unknown } | undefined;

  constructor(pick: Pick, seed: number, maxSteps: number) {
    this.#pick = pick;
    this.#maxSteps = maxSteps;
    this.random = seededRandom(seed);
  }

  async play(scenario: Scenario): Promise<Run> {
    void this.#follow(this.#scenario, async () => scenario(this));
    for (;;) {
      await this.clock.settle();
      if (this.#refusal !== undefined) throw this.#refusal;
      this.#checkInvariants();
      if (this.#failure !== undefined) return this.#end(this.#finding("failed", this.#failure));
      if (this.#isCut) return this.#end("cut");
      if (this.#isOver()) return this.#end("passed");
      const ready = this.#options();
      if (ready.length === 0) return this.#end(this.#finding("stuck", { why: this.#whoIsStuck(), cause: undefined }));
      if (this.#lines.length >= this.#maxSteps) return this.#end("cut");
      const next = ready[this.#decide(ready.map(({ key }) => key))] as Ready;
      this.#ready = this.#ready.filter((each) => each !== next);
      if (next.actor !== this.#last) this.#switches += 1;
      this.#last = next.actor;
      this.#perform(next);
    }
  }

  readonly step = <T>(label: string, work?: StepWork<T>): Promise<T> => this.#step(this.#scenario, label, work);

  readonly choose = <const C>(label: string, choices: readonly C[]): C => this.#choose(this.#scenario, label, choices);

  readonly invariant = (label: string, check: () => unknown): void => {
    this.#invariants.push({ label, check });
  };

  readonly task = <T>(
    name: string,
    fn: (actor: ExploreActor) => T | PromiseLike<T>,
    { background = false }: { readonly background?: boolean | undefined } = {},
  ): Promise<T> => {
    checkString("name", name);
    if (name === "") throw new RangeError("name must not be empty");
    if (this.#actors.some((each) => each.name === name)) throw new RangeError(`name must be new, got ${name} again`);
    const order = this.#actors.length;
    const actor: Actor = { name, order, isPending: true, isBackground: background };
    this.#actors.push(actor);
    return this.#follow(actor, async () => {
      await this.#step(actor, "starts");
      return await fn({
        step: (label, work) => this.#step(actor, label, work),
        choose: (label, choices) => this.#choose(actor, label, choices),
      });
    });
  };

  #follow<T>(actor: Actor, fn: () => Promise<T>): Promise<T> {
    const result = fn();
    result.then(
      () => (actor.isPending = false),
      (cause) => {
        actor.isPending = false;
        this.#fail(`${actor.name || "the scenario"} failed: ${text(cause)}`, cause);
      },
    );
    return result;
  }

  async #step<T>(actor: Actor, label: string, work?: StepWork<T>): Promise<T> {
    const key = said(actor, label);
    const picked = (): Promise<Line> => new Promise((perform) => void this.#ready.push({ actor, key, perform }));
    if (typeof work !== "object") {
      const line = await picked();
      return await tell(line, async () => work?.() as T);
    }
    const [outcome] = await Promise.allSettled([work]);
    const line = await picked();
    return await tell(line, () => (outcome.status === "fulfilled" ? outcome.value : Promise.reject(outcome.reason)));
  }

  #choose<C>(actor: Actor, label: string, choices: readonly C[]): C {
    if (!Array.isArray(choices)) throw wrongType("choices", choices, "a list");
    if (choices.length === 0) throw new RangeError("choices must not be empty");
    if (this.#lines.length >= this.#maxSteps) {
      this.#isCut = true;
      throw new RangeError(`the schedule is cut at ${this.#maxSteps} steps`); // or a loop would choose for ever
    }
    const keys = choices.map((choice, index) => said(actor, `${label}: ${show(choice) ?? `choice ${index + 1}`}`));
    const picked = this.#decide(keys);
    this.#lines.push({ key: this.#decisions.at(-1)?.keys[picked] as string, result: undefined });
    return choices[picked] as C;
  }

  #isOver(): boolean {
    if (this.#actors.some(({ isPending, isBackground }) => isPending && !isBackground)) return false;
    return this.#ready.every(({ actor }) => actor.isBackground);
  }

  #options(): Ready[] {
    const nearness = ({ actor }: Ready): number => (actor === this.#last ? -1 : actor.order);
    const options = this.#ready.toSorted((a, b) => nearness(a) - nearness(b));
    const { nextAt } = this.clock;
    if (nextAt === undefined) return options;
    return [...options, { actor: this.#time, key: `time passes to ${nextAt} ms`, perform: () => this.clock.pass() }];
  }

  /** The same words twice are told apart, so that a schedule in words says which. */
  #decide(given: readonly string[]): number {
    const counts = new Map<string, number>();
    const keys = given.map((key) => {
      const count = (counts.get(key) ?? 0) + 1;
      counts.set(key, count);
      return count === 1 ? key : `${key} #${count}`;
    });
    try {
      const picked = this.#pick(keys, this.#decisions.length);
      this.#decisions.push({ keys, picked });
      return picked;
    } catch (error) {
      this.#refusal ??= error; // not a failure of the task that chooses
      throw error;
    }
  }

  #perform({ perform }: Ready): void {
    const { keys, picked } = this.#decisions.at(-1) as Decision;
    const line: Line = { key: keys[picked] as string, result: undefined };
    this.#lines.push(line);
    try {
      perform(line);
    } catch (cause) {
      this.#fail(`a timer failed: ${text(cause)}`, cause);
    }
  }

  #checkInvariants(): void {
    for (const { label, check } of this.#invariants) {
      try {
        const holds = check();
        if (holds === false) this.#fail(`it does not hold that ${label}`, undefined);
        if (!(holds instanceof Promise)) continue;
        holds.catch(() => {}); // it is refused whatever it says
        throw new TypeError("the check must answer at once, got a promise");
      } catch (cause) {
        this.#fail(`it does not hold that ${label}: ${text(cause)}`, cause);
      }
    }
  }

  #fail(why: string, cause: unknown): void {
    if (!this.#isCut) this.#failure ??= { why, cause };
  }

  #whoIsStuck(): string {
    const stuck = this.#actors.filter(({ isPending, isBackground }) => isPending && !isBackground);
    const tasks = stuck.filter((actor) => actor !== this.#scenario);
    const names = (tasks.length > 0 ? tasks : stuck).map(({ name }) => name || "the scenario");
    return `nothing can go on: ${names.join(", ")} ${names.length === 1 ? "waits" : "wait"} for ever`;
  }

  #finding(
    kind: ExploreFinding["kind"],
    { why, cause }: { readonly why: string; readonly cause: unknown },
  ): ExploreFinding {
    const steps = this.#lines.map(({ key, result }) => (result === undefined ? key : `${key} (${result})`));
    return { kind, why, cause, steps, schedule: this.#lines.map(({ key }) => key) };
  }

  #end(outcome: Run["outcome"]): Run {
    return { outcome, decisions: this.#decisions, switches: this.#switches };
  }
}

async function tell<T>(line: Line, work: () => T | PromiseLike<T>): Promise<T> {
  try {
    const value = await work();
    line.result = show(value);
    return value;
  } catch (error) {
    line.result = show(error);
    throw error;
  }
}

function said({ name }: Actor, label: string): string {
  return name === "" ? label : `${name} ${label}`;
}

/** What fits in a line, and can be told at all. */
function show(value: unknown): string | undefined {
  try {
    if (value instanceof Error) return text(value).split("\n", 1)[0];
    const shown = typeof value === "string" ? value : typeof value === "bigint" ? `${value}n` : JSON.stringify(value);
    return shown !== undefined && shown.length <= MAX_SHOWN ? shown : undefined;
  } catch {
    return undefined; // a circle, a revoked proxy, or foreign code in it
  }
}

const MAX_SHOWN = 40;

function text(cause: unknown): string {
  try {
    return cause instanceof Error ? cause.message : String(cause);
  } catch {
    return typeof cause; // without a prototype
  }
}
