/** What is behind `Actor`. */
import type { Clock, Timer, TimerTask } from "../clock/clock.ts";
import { sleep } from "../clock/sleep.ts";
import { systemClock } from "../clock/system.ts";
import { ClearedError, ClosedError, QueueFullError, WaitCycleError } from "../errors.ts";
import { Rest } from "../flow/limiter/rest.ts";
import { type Granted, QueueCore } from "../flow/queue-core.ts";
import { isContextFree } from "../internal/async-context.ts";
import { checkFunction, checkInteger, checkMs, checkWait } from "../internal/check.ts";
import { asyncDispose } from "../internal/dispose.ts";
import { Emitter } from "../internal/emitter.ts";
import { register } from "../internal/names.ts";
import { notice, probe } from "../internal/probe.ts";
import type { Wait } from "../internal/wait.ts";
import { WaitList } from "../internal/wait-list.ts";
import { whenSettled } from "../internal/when-settled.ts";
import type { WaitOptions } from "../policy.ts";
import { Cancellation, isEcho } from "../scope/cancellation.ts";
import type { ActorEnd, ActorOptions, ActorStats, Receive, RetireReason, Setup } from "./actor-options.ts";
import type { Actor } from "./actor.ts";
import { Ask } from "./ask.ts";
import { checkStrategy, type Child, Life, type Parent } from "./life.ts";
import { type Entry, MailboxStore } from "./mailbox-store.ts";
import { Restarts, type Verdict } from "./restarts.ts";
import { SlowWatch } from "./slow-watch.ts";
import { currentTurn, isCurious, type Party, pathOfWaits, Turn, turns } from "./turn.ts";

type Place<M, R> = Wait<Granted<Entry<M, R>, object>, unknown>;

const IN = Promise.resolve(true);
const DROPPED = Promise.resolve(false);

class MailboxActor<M, R> implements Actor<M, R>, Party, Parent, Child, TimerTask {
  // I1  #isBusy unless the mailbox is empty, no order is given and nothing is under way: one loop, which handles one
  //     message at a time, and puts the state away between two
  // I2  each accepted message is handled once, or undelivered once; an ask whose sender left is skipped once
  // I3  there is a state only from the setup for a message until it is put away, which is awaited before the next setup
  // I4  once over, it is closed, empty, has no state and no children, and stays busy
  readonly capacity: number;
  readonly name: string | undefined;
  readonly strategy: Parent["strategy"];
  turn: Turn | undefined;
  isAsker = false;
  readonly #setup: Setup<M, R>;
  readonly #options: ActorOptions<M>;
  readonly #clock: Clock;
  readonly #idleMs: number;
  readonly #findsCycles: boolean;
  readonly #isTimed: boolean;
  /** That of the parent that this lives in. */
  readonly #home: Life | undefined;
  readonly #store: MailboxStore<M, R>;
  readonly #core: QueueCore<Entry<M, R>, object>;
  readonly #replies: WaitList<R, Ask<M, R>>;
  readonly #restarts: Restarts<M>;
  readonly #slow: SlowWatch<M> | undefined;
  readonly #rest: Rest;
  readonly #ends = new Emitter<ActorEnd>();
  readonly #counts = {
    completed: 0,
    failed: 0,
    restarts: 0,
    passivated: 0,
    cycles: 0,
    undelivered: 0,
    skipped: 0,
    lateReplies: 0,
    deepestAsk: 0,
    copiedBytes: 0,
  };
  #life: Life | undefined;
  #receive: Receive<M, R> | undefined;
  /** What is in hand, for whoever its handler's promise tells. */
  #message: M | undefined;
  #ask: Ask<M, R> | undefined;
  #order: { readonly error: unknown } | "restart" | undefined;
  #isBusy = false;
  #alarm: () => void = () => {};
  #pause: Cancellation | undefined;
  #drains: WaitList<void> | undefined;
  #idleAt = 0;
  #idleTimer: Timer | undefined;
  #end: ActorEnd = { reason: undefined, why: "closed" };
  #isOver = false;

  constructor(capacity: number, setup: Setup<M, R>, options: ActorOptions<M> = {}, home?: Life) {
    const { clock = systemClock, whenFull, onUndelivered, copy, idleMs, findCycles } = options;
    this.capacity = checkInteger("capacity", capacity, { min: 1 });
    checkFunction("setup", setup);
    if (onUndelivered !== undefined) checkFunction("onUndelivered", onUndelivered);
    if (copy !== undefined) checkFunction("copy", copy);
    this.strategy = checkStrategy(options.children);
    this.#setup = setup;
    this.#options = options;
    this.#clock = clock;
    this.#idleMs = checkMs("idleMs", idleMs ?? Infinity);
    this.#findsCycles = findCycles ?? isContextFree();
    this.#home = home;
    this.#store = new MailboxStore(clock);
    this.#core = new QueueCore<Entry<M, R>, object>(this, capacity, this.#store, clock, {
      whenFull: typeof whenFull === "function" ? (entry) => whenFull(messageOf(entry)) : whenFull,
      onUndelivered: (entry, reason) => this.#lose(entry, reason),
    });
    this.#replies = new WaitList({ owner: this, onLeave: (ask, reason) => this.#left(ask, reason) });
    this.#restarts = new Restarts(options, clock);
    this.#slow = options.slowMs === undefined ? undefined : new SlowWatch(options, clock);
    this.#isTimed = this.#slow !== undefined || options.name !== undefined;
    this.#rest = new Rest(clock, this.#work);
    this.name = options.name;
    register("actor", options, this);
    this.#sleep();
  }

  get size(): number {
    return this.#store.size;
  }

  get closed(): boolean {
    return this.#core.isEnded;
  }

  stats(): ActorStats {
    const { producers, rejected, dropped } = this.#core;
    const { turn } = this;
    const now = this.#clock.now();
    const oldestAt = this.#store.oldestAt ?? now;
    return {
      size: this.size,
      capacity: this.capacity,
      oldestAgeMs: Math.max(0, now - oldestAt),
      waitingSenders: producers.size,
      waitingReplies: this.#replies.size,
      running: turn === undefined ? 0 : 1,
      concurrency: 1,
      oldestRunMs: turn === undefined || !this.#isTimed ? 0 : Math.max(0, now - turn.startedAt),
      ...this.#counts,
      slow: this.#slow?.count ?? 0,
      rejected: rejected + this.#counts.cycles,
      dropped,
      timedOut: producers.timedOut + this.#replies.timedOut,
      aborted: producers.aborted + this.#replies.aborted,
      children: this.#life?.children.size ?? 0,
      closed: this.closed,
    };
  }

  tell(message: M, options?: WaitOptions): Promise<boolean> {
    const core = this.#core;
    try {
      if (options !== undefined) checkWait(options);
      const entry = this.#copied(message);
      const isIn = core.tryPut(entry);
      if (isIn !== undefined) {
        if (!this.#isBusy) this.#wake();
        return isIn ? IN : DROPPED;
      }
      if (options !== undefined) core.producers.refuseHaste(options);
      options?.signal?.throwIfAborted(); // by `whenFull`
      const from = this.#asker();
      const wait = core.producers.wait(options ?? {}, this.#clock, entry) as Promise<boolean>;
      if (from !== undefined) this.#beWaitedFor(from, wait);
      return wait;
    } catch (error) {
      return Promise.reject(error);
    }
  }

  tryTell(message: M): boolean {
    const outcome = this.#core.offer(this.#copied(message));
    if (typeof outcome === "string") this.#core.rejected += 1;
    if (!this.#isBusy) this.#wake();
    return outcome === true;
  }

  ask(message: M, options: WaitOptions = {}): Promise<R> {
    try {
      checkWait(options);
      const from = this.#asker();
      const ask = new Ask<M, R>(this.#copied(message), from);
      if (this.#isBusy) this.#replies.refuseHaste(options);
      ask.reply = this.#replies.wait(options, this.#clock, ask) as Wait<R, Ask<M, R>>;
      this.#send(ask);
      const { depth } = ask;
      if (depth > this.#counts.deepestAsk) this.#counts.deepestAsk = depth;
      if (!this.#isBusy) this.#wake();
      return ask.reply;
    } catch (error) {
      return Promise.reject(error);
    }
  }

  watch(listener: (end: ActorEnd) => void): () => void {
    checkFunction("listener", listener);
    if (!this.#isOver) return this.#ends.add(listener);
    let isWatching = true;
    void Promise.resolve().then(() => isWatching && listener(this.#end));
    return () => void (isWatching = false);
  }

  drain(options: WaitOptions = {}): Promise<void> {
    try {
      checkWait(options);
      if (!this.#isBusy || this.#isOver) return Promise.resolve();
      this.#drains ??= new WaitList<void>();
      this.#drains.refuseHaste(options);
      return this.#drains.wait(options, this.#clock);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  clear(reason: unknown = new ClearedError("actor")): number {
    const entries = this.#store.clear();
    for (const entry of entries) this.#lose(entry, reason);
    this.#core.onRoom();
    return entries.length;
  }

  close(): void {
    this.#core.close("actor");
    if (this.size === 0) this.#pause?.cancel(undefined);
    this.#wake();
  }

  abort(reason?: unknown): void {
    if (this.#isOver) return;
    const aborted = new Cancellation();
    aborted.cancel(reason);
    this.#stop({ why: "aborted", reason: aborted.reason }, aborted.reason);
    this.turn?.abort(aborted.reason);
  }

  /** Because a sibling does. */
  restart(): void {
    if (this.#life === undefined) return;
    this.#order ??= "restart";
    this.#wake();
  }

  /** By what a child has escalated. */
  fail(error: unknown): void {
    if (this.#isOver) return;
    this.#order = { error };
    this.#wake();
  }

  whenOver(): Promise<void> {
    return this.drain();
  }

  async [asyncDispose](): Promise<void> {
    this.close();
    await this.drain();
  }

  /** It has been idle for long enough, or was woken meanwhile. */
  onTimer(): void {
    this.#idleTimer = undefined;
    if (this.#isBusy || this.#life === undefined) return;
    const leftMs = this.#idleAt + this.#idleMs - this.#clock.now();
    if (leftMs > 0) this.#awaitIdleness(leftMs);
    else this.passivate();
  }

  /** Only while it is idle. */
  passivate(): void {
    if (this.#isBusy || this.#life === undefined) return;
    this.#isBusy = true;
    this.#counts.passivated += 1;
    void this.#putAway("idle", true).then(this.#work);
  }

  #copied(message: M): M {
    const { copy } = this.#options;
    if (copy === undefined) return message;
    const copied = copy(message);
    this.#counts.copiedBytes += copied.bytes;
    return copied.copy;
  }

  /** The turn that is about to wait for this. Throws if this waits for it. */
  #asker(): Turn | undefined {
    const from = this.#findsCycles ? currentTurn() : undefined;
    if (from === undefined) return undefined;
    from.actor.isAsker = true;
    const path = pathOfWaits(this, from.actor);
    if (path === undefined) return from;
    const error = new WaitCycleError([...path.slice(-1), ...path]);
    this.#counts.cycles += 1;
    notice?.("rejected", this, error);
    throw error;
  }

  #beWaitedFor(from: Turn, wait: Promise<unknown>): void {
    from.beginWait(this);
    const end = (): void => from.endWait(this);
    wait.then(end, end);
  }

  /** Its reply is awaited already, since signal and clock are foreign code and may throw. */
  #send(ask: Ask<M, R>): void {
    const core = this.#core;
    try {
      const isIn = core.tryPut(ask);
      if (isIn === false) throw new QueueFullError(this.capacity);
      if (!ask.isAwaited) this.#withdraw(ask); // an abort by `whenFull`
      else if (isIn === undefined) this.#joinLine(ask);
    } catch (error) {
      this.#replies.remove(ask.reply);
      throw error;
    }
    ask.from?.beginWait(this);
  }

  #joinLine(ask: Ask<M, R>): void {
    const place = this.#core.producers.wait({}, this.#clock, ask);
    ask.at = "line";
    ask.place = place as typeof ask.place;
    place.then(undefined, (error: unknown) => ask.reply.reject(error)); // it was closed meanwhile
  }

  /** Whose promise rejects, for whatever reason. */
  #left(ask: Ask<M, R>, reason: unknown): void {
    ask.from?.endWait(this);
    if (ask.at === "hand") this.turn?.abort(reason);
    else this.#withdraw(ask);
  }

  #withdraw(ask: Ask<M, R>): void {
    if (ask.place !== undefined) this.#core.producers.remove(ask.place as Place<M, R>);
    if (ask.at === "mailbox") {
      this.#counts.skipped += 1;
      this.#store.forget(ask);
      this.#core.onRoom();
    }
    ask.at = "gone";
  }

  /** What was accepted will not be handled. */
  #lose(entry: Entry<M, R>, reason: unknown): void {
    this.#counts.undelivered += 1;
    if (entry instanceof Ask) return entry.reply.reject(reason);
    notice?.("dropped", this, entry);
    try {
      this.#options.onUndelivered?.(entry, reason);
    } catch (error) {
      void Promise.reject(error); // seen as unhandled
    }
  }

  #wake(): void {
    if (this.#isBusy) return;
    this.#isBusy = true;
    this.#alarm();
  }

  /** The next wake-up goes on from here, in the async context of the actor and not in that of who wakes it. */
  #sleep(): void {
    this.#isBusy = false;
    if (!this.#findsCycles && turns.get() !== undefined) turns.enter(undefined); // of the actor that made this one
    void new Promise<void>(this.#keepAlarm).then(this.#work);
  }

  readonly #keepAlarm = (resolve: () => void): void => void (this.#alarm = resolve);

  /** Goes on until it must wait for something, which then calls this again. Never in two places at a time (I1). */
  readonly #work = (): void => {
    for (;;) {
      if (this.#order !== undefined) {
        if (!this.#obey()) return;
      } else if (!this.#core.hasNext()) return this.#becomeIdle();
      else if (this.#rest.isDue() || !this.#handle(this.#core.next())) return;
    }
  };

  #becomeIdle(): void {
    if (this.closed) return void this.#finish();
    this.#sleep();
    this.#grantDrains();
    if (this.#life === undefined) return;
    this.#idleAt = this.#idleMs === Infinity ? 0 : this.#clock.now();
    if (this.#idleMs < Infinity && this.#idleTimer === undefined) this.#awaitIdleness(this.#idleMs);
  }

  #awaitIdleness(ms: number): void {
    this.#idleTimer = this.#clock.setTimer(ms, this, { background: true });
  }

  #grantDrains(): void {
    if (this.#drains === undefined) return;
    for (const wait of this.#drains.live()) {
      this.#drains.remove(wait);
      wait.grant();
    }
  }

  /** Whether it is done with the message. */
  #handle(entry: Entry<M, R>): boolean {
    const ask = entry instanceof Ask ? entry : undefined;
    const message = messageOf(entry);
    if (ask !== undefined) {
      if (ask.reply.isDoomed) ask.reply.onAbort(ask.reply.watchers?.signal.reason);
      if (!ask.isAwaited) return true;
      ask.at = "hand";
    }
    const turn = this.#enter(ask?.depth ?? 0);
    this.#ask = ask;
    this.#message = message;
    this.#slow?.begin(turn, message);
    try {
      const result = probe === undefined ? this.#call(message, turn) : this.#callObserved(message, turn);
      if (!isThenable(result)) return this.#succeed(result);
      void whenSettled(result, this.#onFulfilled, this.#onRejected);
      return false;
    } catch (error) {
      return this.#failed(error);
    }
  }

  /** From here on this is what the actor does. */
  #enter(depth: number): Turn {
    const turn = new Turn(this, depth, this.#isTimed ? this.#clock.now() : 0);
    if (this.#findsCycles && isCurious(this, this.#counts.completed)) turns.enter(turn);
    return (this.turn = turn);
  }

  #leave(): Turn {
    const turn = this.turn as Turn;
    turn.isOver = true;
    this.turn = this.#message = undefined;
    this.#slow?.end(turn);
    probe?.gaveBack(turn);
    return turn;
  }

  #call(message: M, turn: Turn): R | PromiseLike<R> {
    return this.#receive === undefined ? this.#begin(message, turn) : this.#receive(message, turn);
  }

  #callObserved(message: M, turn: Turn): R | PromiseLike<R> {
    probe?.took(this, turn, 1, this.#ask?.reply);
    const call = (): R | PromiseLike<R> => this.#call(message, turn);
    return probe === undefined ? call() : probe.within(turn, call);
  }

  #begin(message: M, turn: Turn): R | PromiseLike<R> {
    const life = (this.#life = new Life(this));
    const made = this.#setup(life.contextOf(this, spawnIn));
    const receive = (behavior: Awaited<typeof made>): R | PromiseLike<R> =>
      (this.#receive = life.begin(behavior))(message, turn);
    return isThenable(made) ? whenSettled(made, receive, raise) : receive(made);
  }

  readonly #onFulfilled = (value: R): void => {
    if (this.#succeed(value)) this.#work();
  };

  readonly #onRejected = (error: unknown): void => {
    if (this.#failed(error)) this.#work();
  };

  #succeed(value: R): boolean {
    this.#leave();
    this.#counts.completed += 1;
    this.#restarts.succeeded();
    const ask = this.#takeAsk();
    if (ask !== undefined) this.#reply(ask, value);
    return true;
  }

  #reply(ask: Ask<M, R>, value: R): void {
    const { reply } = ask;
    try {
      const { copy } = this.#options;
      const copied = copy === undefined ? undefined : copy(value);
      this.#counts.copiedBytes += copied?.bytes ?? 0;
      this.#replies.remove(reply);
      ask.from?.endWait(this);
      reply.grant(copied === undefined ? value : copied.copy);
    } catch (error) {
      reply.reject(error); // the work is done, only its result cannot be sent
    }
  }

  /** Of whom a reply is awaited. */
  #takeAsk(): Ask<M, R> | undefined {
    const ask = this.#ask;
    this.#ask = undefined;
    if (ask === undefined) return undefined;
    ask.at = "gone";
    if (ask.isAwaited) return ask;
    this.#counts.lateReplies += 1;
    return undefined;
  }

  #failed(error: unknown): boolean {
    const message = this.#message;
    const isAsk = this.#ask !== undefined;
    const turn = this.#leave();
    this.#counts.completed += 1;
    this.#takeAsk()?.reply.reject(error);
    if (turn.isAborted && isEcho(error, turn.signal)) return true; // it ended since nobody wanted it any more
    this.#counts.failed += 1;
    const verdict = this.#restarts.failed(error, message);
    if (!isAsk && !this.#restarts.isHeard && verdict.decision !== "escalate") this.#tellNobody(error);
    return this.#recover(verdict);
  }

  /** Whether it goes on at once. */
  #recover({ decision, error, delayMs }: Verdict): boolean {
    if (decision === "resume" && this.#receive !== undefined) return true;
    if (decision === "resume" || decision === "restart") {
      this.#home?.restartWith(this);
      void this.#restart(delayMs).then(this.#work);
      return false;
    }
    const reason = new ClosedError("actor");
    reason.cause = error;
    this.#stop({ why: "failed", reason: error }, reason);
    if (decision === "stop") return true;
    if (this.#home !== undefined) this.#home.parent.fail(error);
    else if (this.#ends.size === 0) this.#tellNobody(error);
    return true;
  }

  #tellNobody(error: unknown): void {
    notice?.("failed", this, error);
    void Promise.reject(error);
  }

  #obey(): boolean {
    const order = this.#order;
    this.#order = undefined;
    if (order === undefined) return true;
    if (order !== "restart") return this.#recover(this.#restarts.failed(order.error, undefined));
    void this.#restart(0).then(this.#work);
    return false;
  }

  async #restart(delayMs: number): Promise<void> {
    this.#counts.restarts += 1;
    await this.#putAway("restart", false);
    if (delayMs === 0 || (this.closed && this.size === 0)) return;
    this.#pause = new Cancellation();
    try {
      await sleep(delayMs, { clock: this.#clock, signal: this.#pause.signal });
    } catch {
      // there is nothing more to rest for
    }
    this.#pause = undefined;
  }

  /** Never rejects. */
  async #putAway(why: RetireReason, isGentle: boolean): Promise<void> {
    const life = this.#life;
    this.#life = this.#receive = undefined;
    if (life === undefined) return;
    this.#enter(0);
    try {
      await life.end(why, isGentle);
    } catch (error) {
      this.#tellNobody(error);
    }
    this.#leave();
  }

  #stop(end: ActorEnd, reason: unknown): void {
    if (this.#end.why === "closed") this.#end = end;
    this.#core.close("actor");
    this.clear(reason);
    this.#pause?.cancel(undefined);
    this.#wake();
  }

  async #finish(): Promise<void> {
    await this.#putAway("end", this.#end.why === "closed");
    this.#isOver = true;
    this.#idleTimer?.cancel();
    this.#home?.children.delete(this);
    this.#ends.emit(this.#end);
    this.#grantDrains();
  }
}

// A `const`, since an exported class can't declare `[asyncDispose]` (TS9038).
export const ManagedActor: new <M, R>(
  capacity: number,
  setup: Setup<M, R>,
  options?: ActorOptions<M>,
  home?: Life,
) => Actor<M, R> = MailboxActor;

function spawnIn<N, S>(life: Life, capacity: number, setup: Setup<N, S>, options?: ActorOptions<N>): Actor<N, S> {
  const child = new MailboxActor(capacity, setup, options, life);
  life.children.add(child);
  return child;
}

function messageOf<M, R>(entry: Entry<M, R>): M {
  return entry instanceof Ask ? (entry as Ask<M, R>).message : entry;
}

function isThenable<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  return typeof value === "object" && value !== null && typeof (value as PromiseLike<T>).then === "function";
}

function raise(error: unknown): never {
  throw error;
}
