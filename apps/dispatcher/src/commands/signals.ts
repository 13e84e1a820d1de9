/** SIGTERM and Ctrl-C: the first asks to stop in order, the second ends the process where it stands. */
export interface StopSignal {
  readonly signal: AbortSignal;
  /** Leaves the signals to whoever else wants them. */
  forget(): void;
}

const EXIT_CODES = { SIGINT: 130, SIGTERM: 143 } as const;

export function onStopSignal(onFirst: () => void): StopSignal {
  const controller = new AbortController();
  const listener = (name: NodeJS.Signals): void => {
    if (controller.signal.aborted) process.exit(EXIT_CODES[name as keyof typeof EXIT_CODES]);
    onFirst();
    controller.abort(new Error(`told to stop by ${name}`));
  };
  for (const name of Object.keys(EXIT_CODES)) process.on(name, listener);
  return {
    signal: controller.signal,
    forget() {
      for (const name of Object.keys(EXIT_CODES)) process.off(name, listener);
    },
  };
}
