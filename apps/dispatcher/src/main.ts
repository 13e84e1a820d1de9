#!/usr/bin/env -S node --conditions=@sluice/source
/** The dispatcher from the command line. */
import { runProgram } from "./commands/program.ts";

// Whoever reads what is written may leave (`| head -1`); what has to be delivered is delivered all the same.
for (const stream of [process.stdout, process.stderr])
  stream.on("error", ({ code }: NodeJS.ErrnoException) => {
    if (code !== "EPIPE") process.exitCode = 1;
  });

const exitCode = await runProgram(process.argv.slice(2));
process.exitCode ||= exitCode;
