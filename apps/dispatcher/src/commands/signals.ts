/**
 * SIGTERM and Ctrl-C: the first asks to stop in order, the second ends the process where it stands. The signals of
 * `shutdown` won't do: they never end the process, and take an echo for haste.
 */
import { systemClock } from "sluice";

export interface StopSignal {
  readonly signal: AbortSignal;
  /** Leaves the signals to whoever else wants them. */
  forget(): void;
}

const EXIT_CODES = { SIGINT: 130, SIGTERM: 143 } as const;
/** One Ctrl-C comes twice under npm: from the terminal, and handed on by npm. Nobody presses it again this fast. */
const ECHO_MS = 250;

export function onStopSignal(onFirst: () => void): StopSignal {
  const controller = new AbortController();
  let firstAt = 0;
  const listener = (name: NodeJS.Signals): void => {
    if (!controller.signal.aborted) {
      firstAt = systemClock.now();
      onFirst();
      controller.abort(new Error(`told to stop by ${name}`));
    } else if (systemClock.now() - firstAt > ECHO_MS) {
      process.exit(EXIT_CODES[name as keyof typeof EXIT_CODES]);
    }
  };
  for (const name of Object.keys(EXIT_CODES)) process.on(name, listener);
  return {
    signal: controller.signal,
    forget() {
      for (const name of Object.keys(EXIT_CODES)) process.off(name, listener);
    },
  };
}
