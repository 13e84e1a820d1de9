// npm run chaos -- NAME [FLAG…] and npm run stress -- NAME [FLAG…]: runs tests/chaos/NAME.ts or tests/stress/NAME.ts,
// which reads the flags itself.
import { spawn } from "node:child_process";
import { globSync } from "node:fs";
import { basename } from "node:path";

const [kind = "", name = "--help", ...flags] = process.argv.slice(2);
const names = globSync(`tests/${kind}/*.ts`)
  .map((file) => basename(file, ".ts"))
  .filter((each) => !each.endsWith(".test"))
  .toSorted();
const usage = `usage: npm run ${kind} -- NAME [FLAG…]\nnames: ${names.join(", ")}\nflags: npm run ${kind} -- NAME --help`;

if (name === "--help" || name === "-h") {
  console.log(usage);
} else if (!names.includes(name)) {
  console.error(`no ${kind} scenario is called ${name}\n${usage}`);
  process.exitCode = 2;
} else {
  const child = spawn(process.execPath, ["--conditions=@sluice/source", `tests/${kind}/${name}.ts`, ...flags], {
    stdio: "inherit",
  });
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => child.kill(signal));
  child.once("exit", (code) => {
    process.exitCode = code ?? 1;
  });
}
