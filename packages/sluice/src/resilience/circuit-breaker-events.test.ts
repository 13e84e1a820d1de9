import { setImmediate as turn } from "node:timers/promises";
import { expect, it } from "vitest";
import { CircuitOpenError } from "../errors.ts";
import { onEvent } from "../observe/events.ts";
import { CircuitBreaker } from "./circuit-breaker.ts";

it("tells whoever listens to events of the calls that it turns away", async () => {
  const breaker = new CircuitBreaker({ name: "mail" });
  breaker.open(1_000);
  const heard: unknown[] = [];
  const stop = onEvent((event) => heard.push([event.name, event.subject.kind, event.detail]));
  await expect(breaker.run(() => 1)).rejects.toThrow(CircuitOpenError);
  await turn();
  stop();
  expect(heard).toEqual([["rejected", "circuit-breaker", expect.any(CircuitOpenError)]]);
});
