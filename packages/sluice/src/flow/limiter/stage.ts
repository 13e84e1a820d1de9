/** The stage of a limiter in a composed call: for calls that wait for nothing and ask for no more than a slot. */
import { EitherSignal } from "../../internal/either-signal.ts";
import { keepModel } from "../../internal/model.ts";
import { probe } from "../../internal/probe.ts";
import type { PassStage } from "../../internal/stage.ts";
import type { RunContext } from "../../policy.ts";
import type { LimiterRunOptions } from "./options.ts";
import { Request } from "./request.ts";
import type { Runner } from "./runner.ts";
import type { SelfWaits } from "./self-waits.ts";

/** `tryTake` takes a slot if one is to be had. */
export function stageFor(runner: Runner, selfWaits: SelfWaits | undefined, tryTake: () => boolean): PassStage {
  return {
    hasContext: true,
    enter(options: LimiterRunOptions, around) {
      if (probe !== undefined || !isPlain(options) || selfWaits?.wouldBeCurious() === true || !tryTake())
        return undefined;
      selfWaits?.isCurious(); // it counts
      return new StagedContext(around, runner.signal);
    },
    leave(entered) {
      (entered as StagedContext).end();
      runner.free(1);
      return undefined;
    },
  };
}

function isPlain(options: LimiterRunOptions): boolean {
  return options.signal === undefined && options.priority === undefined && !Request.isNeeded(options);
}

/** What is inside is handed a signal that ends with what is around, and with the limiter. */
class StagedContext implements RunContext {
  readonly #around: RunContext;
  readonly #stop: AbortSignal;
  #either: EitherSignal | undefined = undefined;
  #isOver = false;

  constructor(around: RunContext, stop: AbortSignal) {
    this.#around = around;
    this.#stop = stop;
  }

  /** As that of a `Run`: made when it is asked for, as may be the one around. */
  get signal(): AbortSignal {
    if (this.#either !== undefined) return this.#either.signal;
    const { signal } = this.#around;
    if (signal === undefined || this.#isOver) return signal ?? this.#stop;
    return (this.#either = new EitherSignal(signal, this.#stop)).signal;
  }

  end(): void {
    this.#isOver = true;
    this.#either?.release();
  }
}

keepModel(new StagedContext({ signal: undefined }, new AbortController().signal));
