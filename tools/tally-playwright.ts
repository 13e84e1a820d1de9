import { appendFileSync } from "node:fs";
import type { FullConfig, Reporter, Suite } from "@playwright/test/reporter";

/** Tells `tools/run.ts` how many browser tests passed, failed and were skipped. */
export default class TallyReporter implements Reporter {
  #all: Suite | undefined;
  #errors = 0;

  onBegin(_: FullConfig, all: Suite): void {
    this.#all = all;
  }

  /** Of none of the tests, such as that a file can't be loaded. */
  onError(): void {
    this.#errors += 1;
  }

  onEnd(): void {
    const count = { passed: 0, failed: this.#errors, skipped: 0 };
    const outcomes = { expected: "passed", unexpected: "failed", flaky: "failed", skipped: "skipped" } as const;
    for (const test of this.#all?.allTests() ?? []) count[outcomes[test.outcome()]] += 1;
    const file = process.env["TALLY"];
    if (file !== undefined) appendFileSync(file, `${JSON.stringify(count)}\n`);
  }

  printsToStdio(): boolean {
    return false;
  }
}
