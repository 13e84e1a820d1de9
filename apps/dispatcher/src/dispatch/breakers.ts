/** One breaker for each provider that a channel asks. */
import { KeyedCircuitBreaker, type Clock } from "sluice";
import type { Config } from "../config/config.ts";
import { AttemptError } from "./attempt-error.ts";

export function providerBreakers(channel: string, { breaker }: Config["limits"], clock: Clock): KeyedCircuitBreaker {
  return new KeyedCircuitBreaker({
    failures: breaker.failures,
    cooldownMs: breaker.cooldownMs,
    clock,
    name: `providers of ${channel}`,
    // What went wrong on our side, or is wrong with one message, says nothing of who was to take it.
    classify: (outcome) => {
      if (outcome.status === "fulfilled") return "success";
      return outcome.reason instanceof AttemptError && outcome.reason.providerFault ? "failure" : "ignore";
    },
  });
}
