import { dispose } from "../internal/dispose.ts";
import type { RunContext, WaitOptions } from "../policy.ts";

/** What the parties of one round are told. */
export interface BarrierPass {
  /** Which round it was; the first is 0. A round that was broken keeps its number. */
  readonly generation: number;
  /** Who came how-manyeth in that round: 0 for the first. */
  readonly index: number;
}

/** One registered party of a barrier, which counts it until it leaves. Leaving twice is the same as leaving once. */
export interface BarrierParty extends Disposable {
  readonly name: string;
  /** Arrives, and waits for the others. As `Barrier.wait`, and `MiscountError` if it has arrived in this round already. */
  wait(options?: WaitOptions): Promise<BarrierPass>;
  /** Arrives without waiting, and returns the round's generation. As `Barrier.arrive`. */
  arrive(): number;
  /** Leaves for good. The others wait for it no longer: if they are all there, that completes their round. */
  deregister(): void;
}

export interface BarrierContext extends RunContext {
  readonly party: BarrierParty;
}

export interface RegisteredParty extends BarrierParty {
  /** Generation of its latest arrival; -1 before the first. */
  arrivedIn: number;
}

/** What a party needs of its barrier. */
export interface PartyHost {
  arriveAndWait(options: WaitOptions, party: RegisteredParty): Promise<BarrierPass>;
  arrive(party: RegisteredParty): number;
  deregister(party: RegisteredParty): void;
}

export function issueParty(name: string, host: PartyHost): RegisteredParty {
  return new Party(name, host);
}

class Party implements RegisteredParty {
  readonly name: string;
  arrivedIn = -1;
  readonly #host: PartyHost;

  constructor(name: string, host: PartyHost) {
    this.name = name;
    this.#host = host;
  }

  wait(options: WaitOptions = {}): Promise<BarrierPass> {
    return this.#host.arriveAndWait(options, this);
  }

  arrive(): number {
    return this.#host.arrive(this);
  }

  deregister(): void {
    this.#host.deregister(this);
  }

  [dispose](): void {
    this.deregister();
  }
}
