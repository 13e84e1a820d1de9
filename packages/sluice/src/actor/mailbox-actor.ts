/** What is behind `Actor`: the loop that handles messages, and what becomes of those that fail. */
import type { Clock } from "../clock/clock.ts";
import { sleep } from "../clock/sleep.ts";
import { systemClock } from "../clock/system.ts";
import { ClearedError, ClosedError } from "../errors.ts";
import { Rest } from "../flow/limiter/rest.ts";
import { checkFunction, checkInteger, checkMs, checkWait } from "../internal/check.ts";
import { asyncDispose } from "../internal/dispose.ts";
import { register } from "../internal/names.ts";
import { notice, probe } from "../internal/probe.ts";
import { grantAll, WaitList } from "../internal/wait-list.ts";
import { whenSettled } from "../internal/when-settled.ts";
import type { WaitOptions } from "../policy.ts";
import { Cancellation, isEcho } from "../scope/cancellation.ts";
import type { ActorEnd, ActorOptions, ActorStats, RetireReason, Setup } from "./actor-options.ts";
import type { Actor } from "./actor.ts";
import { Ask } from "./ask.ts";
import { Ending } from "./ending.ts";
import { IdleWatch } from "./idle-watch.ts";
import { Inbox, messageOf, type Owner } from "./inbox.ts";
import { checkStrategy, type Child, type Life, type Parent } from "./life.ts";
import type { Entry } from "./mailbox-store.ts";
import { Restarts, type Verdict } from "./restarts.ts";
import { SlowWatch } from "./slow-watch.ts";
import { isThenable, State } from "./state.ts";
import { isCurious, Turn, turns } from "./turn.ts";

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

class MailboxActor<M, R> implements ManagedActor<M, R>, Owner, Parent, Child {
  // I1  busy unless the mailbox is empty, no order is given and nothing is under way: there is one loop, which handles one
  //     message at a time, and puts the state away between two
  // I2  there is a state only from the setup for a message until it has been put away, which the next setup waits for
  // I3  once over, it is closed and empty, has no state and no children, and stays busy
  readonly capacity: number;
  readonly name: string | undefined;
  readonly strategy: Parent["strategy"];
  turn: Turn | undefined;
  isAsker = false;
  isBusy = false;
  label: string | undefined;
  keeper: Keeper | undefined;
  readonly #clock: Clock;
  readonly #isTimed: boolean;
  /** The state of the parent that this lives in. */
  readonly #home: Life | undefined;
  readonly #inbox: Inbox<M, R>;
  readonly #state: State<M, R>;
  readonly #restarts: Restarts<M>;
  readonly #slow: SlowWatch<M> | undefined;
  readonly #idle: IdleWatch | undefined;
  readonly #rest: Rest;
  readonly #ending = new Ending();
  readonly #counts = { completed: 0, failed: 0, restarts: 0, passivated: 0 };
  /** What is in hand, for whoever its handler's promise tells. */
  #message: M | undefined;
  #ask: Ask<M, R> | undefined;
  /** For the loop, before the next message: others give it in whatever async context they run in. */
  #order: Order | undefined;
  #alarm: () => void = () => {};
  #pause: Cancellation | undefined;
  #drains: WaitList<void> | undefined;

  constructor(capacity: number, setup: Setup<M, R>, options: ActorOptions<M> = {}, home?: Life) {
    const { clock = systemClock, idleMs = Infinity, slowMs, name } = options;
    this.capacity = checkInteger("capacity", capacity, { min: 1 });
    checkFunction("setup", setup);
    checkMs("idleMs", idleMs);
    this.strategy = checkStrategy(options.children);
    this.#clock = clock;
    this.#isTimed = slowMs !== undefined || name !== undefined;
    this.#home = home;
    this.#inbox = new Inbox(this, capacity, options, clock);
    this.#state = new State(this, setup, spawnIn);
    this.#restarts = new Restarts(options, clock);
    this.#slow = slowMs === undefined ? undefined : new SlowWatch(options, clock);
    this.#idle = idleMs === Infinity ? undefined : new IdleWatch(idleMs, () => this.passivate(), clock);
    this.#rest = new Rest(clock, this.#work);
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

  stats(): ActorStats {
    const { turn } = this;
    return {
      ...this.#inbox.stats(),
      running: turn === undefined ? 0 : 1,
      concurrency: 1,
      oldestRunMs: turn === undefined || !this.#isTimed ? 0 : Math.max(0, this.#clock.now() - turn.startedAt),
      ...this.#counts,
      slow: this.#slow?.count ?? 0,
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

  /** The next wake-up goes on from here, in the async context of the actor and not in that of who wakes it. */
  #sleep(): void {
    this.isBusy = false;
    if (!this.#inbox.findsCycles && turns.get() !== undefined) turns.enter(undefined); // of the actor that made this one
    void new Promise<void>(this.#keepAlarm).then(this.#work);
  }

  readonly #keepAlarm = (resolve: () => void): void => void (this.#alarm = resolve);

  /** Goes on until it must wait for something, which then calls this again. Never in two places at a time (I1). */
  readonly #work = (): void => {
    const { core } = this.#inbox;
    for (;;) {
      if (this.#order !== undefined) {
        if (!this.#obey(this.#order)) return;
      } else if (!core.hasNext()) return this.#becomeIdle();
      else if (this.#mustRest() || !this.#handle(core.next())) return;
    }
  };

  #mustRest(): boolean {
    try {
      return this.#rest.isDue();
    } catch (error) {
      this.#tellNobody(error);
      return false;
    }
  }

  #becomeIdle(): void {
    if (this.closed) return void this.#finish();
    this.#sleep();
    this.#grantDrains();
    const hasState = this.#state.life !== undefined;
    if (hasState && this.#idle !== undefined) this.#attempt(() => this.#idle?.begin());
    this.keeper?.becameIdle(this, hasState);
  }

  #grantDrains(): void {
    if (this.#drains !== undefined) grantAll(this.#drains);
  }

  /** Whether it is done with the message. */
  #handle(entry: Entry<M, R>): boolean {
    const ask = entry instanceof Ask ? entry : undefined;
    const message = messageOf(entry);
    if (ask?.begin() === false) return true;
    this.#ask = ask;
    this.#message = message;
    try {
      const turn = this.#enter(ask?.depth ?? 0);
      this.#slow?.begin(turn, message);
      const result = probe === undefined ? this.#state.handle(message, turn) : this.#handleObserved(message, turn, ask);
      if (!isThenable(result)) return this.#succeeded(result);
      void whenSettled(result, this.#onFulfilled, this.#onRejected);
      return false;
    } catch (error) {
      return this.#failed(error);
    }
  }

  #handleObserved(message: M, turn: Turn, ask: Ask<M, R> | undefined): R | PromiseLike<R> {
    const handle = (): R | PromiseLike<R> => this.#state.handle(message, turn);
    probe?.took(this, turn, 1, ask?.reply);
    return probe === undefined ? handle() : probe.within(turn, handle);
  }

  /** From here on this is what the actor does. */
  #enter(depth: number): Turn {
    const turn = new Turn(this, depth, this.#isTimed ? this.#clock.now() : 0);
    if (this.#inbox.findsCycles && isCurious(this, this.#counts.completed)) turns.enter(turn);
    return (this.turn = turn);
  }

  /** There was no turn if the clock has kept it from being entered. */
  #leave(): Turn | undefined {
    const turn = this.turn;
    this.turn = this.#message = undefined;
    if (turn === undefined) return undefined;
    turn.isOver = true;
    if (this.#slow !== undefined) this.#attempt(() => this.#slow?.end(turn));
    probe?.gaveBack(turn);
    return turn;
  }

  readonly #onFulfilled = (value: R): void => {
    if (this.#succeeded(value)) this.#work();
  };

  readonly #onRejected = (error: unknown): void => {
    if (this.#failed(error)) this.#work();
  };

  #succeeded(value: R): boolean {
    this.#leave();
    this.#counts.completed += 1;
    this.#restarts.succeeded();
    const ask = this.#takeAsk();
    if (ask !== undefined) this.#inbox.reply(ask, value);
    return true;
  }

  /** Whether it goes on at once. */
  #failed(error: unknown): boolean {
    const message = this.#message;
    const ask = this.#takeAsk();
    const turn = this.#leave();
    this.#counts.completed += 1;
    if (ask !== undefined) this.#inbox.replyError(ask, error);
    if (turn?.isAborted === true && isEcho(error, turn.signal)) return true; // it ended since nobody wanted it any more
    this.#counts.failed += 1;
    const verdict = this.#restarts.failed(error, message);
    const isHeard = ask !== undefined || this.#restarts.isHeard || verdict.decision === "escalate";
    if (!isHeard) this.#tellNobody(error);
    return this.#recover(verdict);
  }

  #takeAsk(): Ask<M, R> | undefined {
    const ask = this.#ask;
    this.#ask = undefined;
    return ask;
  }

  #recover({ decision, error, delayMs }: Verdict): boolean {
    if (decision === "resume" && this.#state.isMade) return true;
    if (decision === "resume" || decision === "restart") {
      this.#home?.restartWith(this);
      void this.#restart(delayMs).then(this.#work);
      return false;
    }
    const reason = new ClosedError("actor");
    reason.cause = error;
    this.#stop({ why: "failed", reason: error }, reason);
    if (decision === "stop") return true;
    if (this.#home !== undefined) this.#home.fail(error);
    else if (!this.#ending.isWatched) this.#tellNobody(error);
    return true;
  }

  #tellNobody(failure: unknown): void {
    notice?.("failed", this, failure);
    void Promise.reject(failure); // seen as unhandled
  }

  /** For what it can do without: the clock is foreign code, and may throw. */
  #attempt(act: () => void): void {
    try {
      act();
    } catch (error) {
      this.#tellNobody(error);
    }
  }

  #obey(order: Order): boolean {
    this.#order = undefined;
    if (typeof order === "object") return this.#recover(this.#restarts.failed(order.error, undefined));
    if (order === "idle") this.#counts.passivated += 1;
    void (order === "idle" ? this.#putAway(order, true) : this.#restart(0)).then(this.#work);
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
      if (!pause.isCancelled) this.#tellNobody(error); // else there is nothing left to rest for
    }
    this.#pause = undefined;
  }

  /** Never rejects. */
  async #putAway(why: RetireReason, isGentle: boolean): Promise<void> {
    this.#attempt(() => this.#enter(0));
    try {
      await this.#state.putAway(why, isGentle);
    } catch (error) {
      this.#tellNobody(error);
    }
    this.#leave();
    if (typeof this.#order === "object") this.#tellNobody(this.#order.error); // of a child that is gone
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
    this.#attempt(() => this.#idle?.stop());
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
