/**
 * The system clock for very many timers at a time: all share one native timer, those in the background another, on a
 * timing wheel that takes 28 B a timer where `setTimeout` takes 160 to 183. Hand it to what sets them, as `clock`.
 * Where a test, or a tool that watches timers, has replaced `setTimeout`, each is a timer of its own, as who steps and
 * counts them expects. A task runs in nobody's async context.
 */
import type { Clock } from "./clock.ts";
import { systemClock } from "./system.ts";
import { Alarm, isRuntimesOwn } from "./wheel-alarm.ts";

export const wheelClock: Clock = {
  ...systemClock,
  setTimer(delayMs, task, options) {
    if (!isRuntimesOwn()) return systemClock.setTimer(delayMs, task, options);
    if (options?.background === true) return (housekeeping ??= new Alarm(true)).set(delayMs, task);
    return (awaited ??= new Alarm(false)).set(delayMs, task);
  },
};

let awaited: Alarm | undefined;
let housekeeping: Alarm | undefined;
