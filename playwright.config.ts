import { defineConfig } from "@playwright/test";

/** Debian's own Chromium, which `tools/debian.ts` sees to, so that nothing has to be downloaded. */
const flags = ["no-sandbox", "disable-gpu", "disable-quic", "no-first-run", "disable-background-networking"];

export default defineConfig({
  testMatch: ["examples/**/*.spec.ts", "apps/*/e2e/*.spec.ts"],
  outputDir: "node_modules/.cache/playwright",
  forbidOnly: process.env["CI"] !== undefined,
  workers: 1, // a second browser takes longer to start than the tests take
  timeout: 60_000, // a bound for what hangs, not a measure: machines are shared
  expect: { timeout: 20_000 },
  reporter: [["list"], ["./tools/tally-playwright.ts"]],
  use: {
    launchOptions: {
      executablePath: "/usr/bin/chromium",
      args: [...flags, "disable-component-update", "disable-sync"].map((flag) => `--${flag}`),
    },
  },
});
