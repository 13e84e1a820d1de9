#!/usr/bin/env -S node --conditions=@sluice/source
/** The dispatcher from the command line. */
import { runProgram } from "./commands/program.ts";

process.exitCode = await runProgram(process.argv.slice(2));
