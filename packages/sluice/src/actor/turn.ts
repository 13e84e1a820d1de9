/** The handling of one message: what is started in it knows by the async context where it comes from. */
import { AsyncContext } from "../internal/async-context.ts";
import type { MessageContext } from "./actor-options.ts";

/** Something with a mailbox, as rings are looked for. */
export interface Party {
  /** For messages. */
  readonly label: string | undefined;
  /** What it does now. */
  readonly turn: Turn | undefined;
  /** Whether one of its turns was seen to wait for an actor. */
  isAsker: boolean;
}

const FIRST = 100;
/** A prime, or it might meet the same of messages that follow one another in a pattern each time. */
const EVERY = 251;

/**
 * Whether the next turn, of this number, is to enter its context, which takes longer than all else that a message does:
 * always once the actor was seen to wait for another, and until then for the first hundred messages and a few later ones.
 */
export function isCurious({ isAsker }: Party, number: number): boolean {
  return isAsker || number < FIRST || number % EVERY === 0;
}

export class Turn implements MessageContext {
  // I1  `waitsFor` holds, once for each wait, whom code of this turn waits for: for a reply, or for room
  readonly actor: Party;
  /** How many asks lead here. */
  readonly depth: number;
  readonly startedAt: number;
  isOver = false;
  waitsFor: Party[] | undefined = undefined;
  #controller: AbortController | undefined = undefined;
  #abort: { readonly reason: unknown } | undefined = undefined;

  constructor(actor: Party, depth: number, startedAt: number) {
    this.actor = actor;
    this.depth = depth;
    this.startedAt = startedAt;
  }

  /** Made when it is asked for: few handlers do. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#abort !== undefined) this.#controller.abort(this.#abort.reason);
    }
    return this.#controller.signal;
  }

  get isAborted(): boolean {
    return this.#abort !== undefined;
  }

  /** The first reason stays. */
  abort(reason: unknown): void {
    this.#abort ??= { reason };
    this.#controller?.abort(reason);
  }

  beginWait(target: Party): void {
    (this.waitsFor ??= []).push(target);
  }

  endWait(target: Party): void {
    const index = this.waitsFor?.indexOf(target) ?? -1;
    if (index !== -1) this.waitsFor?.splice(index, 1);
  }
}

export const turns: AsyncContext<Turn | undefined> = new AsyncContext();

/** The turn that the code which runs now is part of, while it goes on. */
export function currentTurn(): Turn | undefined {
  const turn = turns.get();
  return turn?.isOver === false ? turn : undefined;
}

/** How `target` waits for `actor`, by name: undefined if it doesn't. */
export function pathOfWaits(target: Party, actor: Party, seen: Set<Party> = new Set()): string[] | undefined {
  const name = target.label ?? "an actor without a name";
  if (target === actor) return [name];
  if (seen.has(target)) return undefined;
  seen.add(target);
  for (const next of target.turn?.waitsFor ?? []) {
    const path = pathOfWaits(next, actor, seen);
    if (path !== undefined) return [name, ...path];
  }
  return undefined;
}
