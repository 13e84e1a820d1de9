/** What is behind `Actor`: what it does next, and what becomes of it when a message or a child has failed. */
import type { Clock } from "../clock/clock.ts";
import { sleep } from "../clock/sleep.ts";
import { systemClock } from "../clock/system.ts";
import { ClearedError, ClosedError } from "../errors.ts";
import { Rest } from "../flow/limiter/rest.ts";
import { checkFunction, checkInteger, checkMs, checkWait } from "../internal/check.ts";
import { asyncDispose } from "../internal/dispose.ts";
import { register } from "../internal/names.ts";
import { grantAll, WaitList } from "../internal/wait-list.ts";
import type { WaitOptions } from "../policy.ts";
import { Cancellation } from "../scope/cancellation.ts";
import type { ActorEnd, ActorOptions, ActorStats, RetireReason, Setup } from "./actor-options.ts";
import type { Actor } from "./actor.ts";
import { Ending } from "./ending.ts";
import { IdleWatch } from "./idle-watch.ts";
import { Inbox, type Owner } from "./inbox.ts";
import { checkStrategy, type Child, type Life, type Parent } from "./life.ts";
import { Restarts, type Verdict } from "./restarts.ts";
import { State } from "./state.ts";
import { type Supervisor, TurnTaker } from "./turn-taker.ts";
import { type Turn, turns } from "./turn.ts";
import { attempt, tellNobody } from "./unheard.ts";

/** To put the state away, or to fail with what a child has escalated. */
type Order = "idle" | "restart" | { readonly error: unknown };

/** Who has many. */
export interface Keeper {
  /** In this turn nothing has been sent to it yet. */
  becameIdle(actor: object, hasState: boolean): void;
  /** It is over, for whatever reason. */
  ended(actor: object): void;
}

export interface ManagedActor<M, R> extends Actor<M, R> {
  /** What it is called in messages. */
  label: string | undefined;
  keeper: Keeper | undefined;
  /** Puts the state away, if it is idle. */
  passivate(): void;
}

class MailboxActor<M, R> implements ManagedActor<M, R>, Owner, Parent, Child, Supervisor<M> {
  // I1  busy unless the mailbox is empty, no order is given and nothing is under way: there is one loop, which handles one
  //     message at a time, and puts the state away between two
  // I2  there is a state only from the setup for a message until it has been put away, which the next setup waits for
  // I3  once over, it is closed and empty, has no state and no children, and stays busy
  readonly capacity: number;
  readonly name: string | undefined;
  readonly strategy: Parent["strategy"];
  isAsker = false;
  isBusy = false;
  label: string | undefined;
  keeper: Keeper | undefined;
  readonly #clock: Clock;
  /** The state of the parent that this lives in. */
  readonly #home: Life | undefined;
  readonly #inbox: Inbox<M, R>;
  readonly #state: State<M, R>;
  readonly #restarts: Restarts<M>;
  readonly #taker: TurnTaker<M, R>;
  readonly #idle: IdleWatch | undefined;
  readonly #rest: Rest;
  readonly #ending = new Ending();
  readonly #counts = { restarts: 0, passivated: 0 };
  /** For the loop, before the next message: others give it in whatever async context they run in. */
  #order: Order | undefined;
  #alarm: () => void = () => {};
  #pause: Cancellation | undefined;
  #drains: WaitList<void> | undefined;

  constructor(capacity: number, setup: Setup<M, R>, options: ActorOptions<M> = {}, home?: Life) {
    const { clock = systemClock, idleMs = Infinity, name } = options;
    this.capacity = checkInteger("capacity", capacity, { min: 1 });
    checkFunction("setup", setup);
    checkMs("idleMs", idleMs);
    this.strategy = checkStrategy(options.children);
    this.#clock = clock;
    this.#home = home;
    this.#inbox = new Inbox(this, capacity, options, clock);
    this.#state = new State(this, setup, spawnIn);
    this.#restarts = new Restarts(options, clock);
    this.#taker = new TurnTaker(this, this.#inbox, this.#state, options, clock);
    this.#idle = idleMs === Infinity ? undefined : new IdleWatch(idleMs, () => this.passivate(), clock);
    this.#rest = new Rest(clock, this.work);
    this.name = this.label = name;
    register("actor", options, this);
    this.#sleep();
  }

  get size(): number {
    return this.#inbox.size;
  }

  get closed(): boolean {
    return this.#inbox.core.isEnded;
  }

  get turn(): Turn | undefined {
    return this.#taker.turn;
  }

  stats(): ActorStats {
    const taker = this.#taker;
    return {
      ...this.#inbox.stats(),
      running: taker.turn === undefined ? 0 : 1,
      concurrency: 1,
      oldestRunMs: taker.runMs,
      ...taker.counts,
      ...this.#counts,
      slow: taker.slow,
      children: this.#state.life?.children.size ?? 0,
      closed: this.closed,
    };
  }

  tell(message: M, options?: WaitOptions): Promise<boolean> {
    return this.#inbox.tell(message, options);
  }

  tryTell(message: M): boolean {
    return this.#inbox.tryTell(message);
  }

  ask(message: M, options: WaitOptions = {}): Promise<R> {
    return this.#inbox.ask(message, options);
  }

  watch(listener: (end: ActorEnd) => void): () => void {
    return this.#ending.watch(listener);
  }

  drain(options: WaitOptions = {}): Promise<void> {
    try {
      checkWait(options);
      if (!this.isBusy || this.#ending.isOver) return Promise.resolve();
      this.#drains ??= new WaitList<void>();
      this.#drains.refuseHaste(options);
      return this.#drains.wait(options, this.#clock);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  clear(reason: unknown = new ClearedError("actor")): number {
    return this.#inbox.clear(reason);
  }

  close(): void {
    this.#inbox.core.close("actor");
    if (this.size === 0) this.#pause?.cancel(undefined);
    this.wake();
  }

  abort(reason?: unknown): void {
    if (this.#ending.isOver) return;
    const aborted = new Cancellation();
    aborted.cancel(reason);
    this.#stop({ why: "aborted", reason: aborted.reason }, aborted.reason);
    this.turn?.abort(aborted.reason);
  }

  async [asyncDispose](): Promise<void> {
    this.close();
    await this.drain();
  }

  wake(): void {
    if (this.isBusy) return;
    this.isBusy = true;
    this.#alarm();
  }

  passivate(): void {
    if (this.isBusy || this.#state.life === undefined) return;
    this.#order = "idle";
    this.wake();
  }

  restart(): void {
    if (this.#ending.isOver || this.#state.life === undefined) return;
    this.#order ??= "restart";
    this.wake();
  }

  fail(error: unknown): void {
    this.#order = { error };
    this.wake();
  }

  succeeded(): void {
    this.#restarts.succeeded();
  }

  failed(error: unknown, message: M, wasAsked: boolean): boolean {
    const verdict = this.#restarts.failed(error, message);
    const isHeard = wasAsked || this.#restarts.isHeard || verdict.decision === "escalate";
    if (!isHeard) tellNobody(this, error);
    return this.#recover(verdict);
  }

  /** The next wake-up goes on from here, in the async context of the actor and not in that of who wakes it. */
  #sleep(): void {
    this.isBusy = false;
    if (!this.#inbox.findsCycles && turns.get() !== undefined) turns.enter(undefined); // of the actor that made this one
    void new Promise<void>(this.#keepAlarm).then(this.work);
  }

  readonly #keepAlarm = (resolve: () => void): void => void (this.#alarm = resolve);

  /** Goes on until it must wait for something, which then calls this again. Never in two places at a time (I1). */
  readonly work = (): void => {
    const { core } = this.#inbox;
    for (;;) {
      if (this.#order !== undefined) {
        if (!this.#obey(this.#order)) return;
      } else if (!core.hasNext()) return this.#becomeIdle();
      else if (this.#mustRest() || !this.#taker.handle(core.next())) return;
    }
  };

  #mustRest(): boolean {
    try {
      return this.#rest.isDue();
    } catch (error) {
      tellNobody(this, error);
      return false;
    }
  }

  #becomeIdle(): void {
    if (this.closed) return void this.#finish();
    this.#sleep();
    this.#grantDrains();
    const hasState = this.#state.life !== undefined;
    if (hasState && this.#idle !== undefined) attempt(this, () => this.#idle?.begin());
    this.keeper?.becameIdle(this, hasState);
  }

  #grantDrains(): void {
    if (this.#drains !== undefined) grantAll(this.#drains);
  }

  /** Whether it goes on at once. */
  #recover({ decision, error, delayMs }: Verdict): boolean {
    if (decision === "resume" && this.#state.isMade) return true;
    if (decision === "resume" || decision === "restart") {
      this.#home?.restartWith(this);
      void this.#restart(delayMs).then(this.work);
      return false;
    }
    const reason = new ClosedError("actor");
    reason.cause = error;
    this.#stop({ why: "failed", reason: error }, reason);
    if (decision === "stop") return true;
    if (this.#home !== undefined) this.#home.fail(error);
    else if (!this.#ending.isWatched) tellNobody(this, error);
    return true;
  }

  #obey(order: Order): boolean {
    this.#order = undefined;
    if (typeof order === "object") return this.#recover(this.#restarts.failed(order.error, undefined));
    if (order === "idle") this.#counts.passivated += 1;
    void (order === "idle" ? this.#putAway(order, true) : this.#restart(0)).then(this.work);
    return false;
  }

  async #restart(delayMs: number): Promise<void> {
    this.#counts.restarts += 1;
    await this.#putAway("restart", false);
    if (delayMs === 0 || (this.closed && this.size === 0)) return;
    const pause = (this.#pause = new Cancellation());
    try {
      await sleep(delayMs, { clock: this.#clock, signal: pause.signal });
    } catch (error) {
      if (!pause.isCancelled) tellNobody(this, error); // else there is nothing left to rest for
    }
    this.#pause = undefined;
  }

  /** Never rejects. */
  async #putAway(why: RetireReason, isGentle: boolean): Promise<void> {
    attempt(this, () => this.#taker.enter(0));
    try {
      await this.#state.putAway(why, isGentle);
    } catch (error) {
      tellNobody(this, error);
    }
    this.#taker.leave();
    if (typeof this.#order === "object") tellNobody(this, this.#order.error); // of a child that is gone
    this.#order = undefined;
  }

  #stop(end: ActorEnd, reason: unknown): void {
    this.#ending.because(end);
    this.#inbox.core.close("actor");
    this.clear(reason);
    this.#pause?.cancel(undefined);
    this.wake();
  }

  async #finish(): Promise<void> {
    await this.#putAway("end", this.#ending.isGentle);
    attempt(this, () => this.#idle?.stop());
    this.#home?.children.delete(this);
    this.keeper?.ended(this);
    this.#ending.tell();
    this.#grantDrains();
  }
}

// A `const`, since an exported class can't declare `[asyncDispose]` (TS9038).
export const ManagedActor: new <M, R>(
  capacity: number,
  setup: Setup<M, R>,
  options?: ActorOptions<M>,
  home?: Life,
) => ManagedActor<M, R> = MailboxActor;

function spawnIn<N, S>(life: Life, capacity: number, setup: Setup<N, S>, options?: ActorOptions<N>): Actor<N, S> {
  const child = new MailboxActor(capacity, setup, options, life);
  life.children.add(child);
  return child;
}
