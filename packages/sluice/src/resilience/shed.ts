/**
 * Turns away the least critical calls first as the load rises, before there is nothing left to choose from
 * (https://sre.google/sre-book/handling-overload, "Criticality"). Load is what runs and waits as a multiple of the limit.
 */
import { checkNumber } from "../internal/check.ts";
import type { Criticality, ShedRule } from "./adaptive-limiter-options.ts";

export interface ShedOptions {
  /** The load from which on calls that are `sheddable` are turned away. At least 0. @default 0.8 */
  readonly sheddable?: number | undefined;
  /** The same for `normal` ones: at 2, as many wait as run. At least `sheddable`. @default 2 */
  readonly normal?: number | undefined;
  /** The same for `critical` ones. At least `normal`. @default Infinity */
  readonly critical?: number | undefined;
}

/** A rule for `AdaptiveLimiter`. */
export function shedByCriticality(options: ShedOptions = {}): ShedRule {
  const { sheddable = 0.8, normal = 2, critical = Infinity } = options;
  const bounds: Readonly<Record<Criticality, number>> = {
    sheddable: checkNumber("sheddable", sheddable, { min: 0, infinity: true }),
    normal: checkNumber("normal", normal, { min: sheddable, infinity: true }),
    critical: checkNumber("critical", critical, { min: normal, infinity: true }),
  };
  return (criticality, load) => load >= bounds[criticality];
}
