/** The command line: what there is to ask for, and which exit code answers it. */
import { Command, CommanderError, InvalidArgumentError, Option } from "commander";
import type { DeadOptions, RedriveOptions } from "./dead.ts";
import { CommandError } from "./failure.ts";
import type { NotificationOptions } from "./notification.ts";
import type { RunOptions } from "./run.ts";
import { processTerminal, type Terminal } from "./terminal.ts";

// A command is loaded when it is asked for: all of them together take longer than most need to run.

const DATA_FOLDER = ".sluice";

const FOOTER = `
Without a command it is run; what that takes, run --help tells.
Exit codes: 0 it is done, 1 it went wrong, 2 it was asked for in a wrong way or the configuration is bad.`;

/** Resolves with the exit code. */
export async function runProgram(args: readonly string[], terminal: Terminal = processTerminal): Promise<number> {
  try {
    await program(terminal).parseAsync(args, { from: "user" });
    return 0;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2; // it has been told already
    terminal.note(error instanceof CommandError ? `error: ${error.message}` : String((error as Error)?.stack ?? error));
    return error instanceof CommandError ? error.exitCode : 1;
  }
}

function program(terminal: Terminal): Command {
  const root = new Command("sluice-dispatcher")
    .description("Takes events in and sends notifications out: limits kept, nothing lost.")
    .exitOverride()
    .configureOutput({
      writeOut: (text) => terminal.print(text.trimEnd()),
      writeErr: (text) => terminal.note(text.trimEnd()),
    })
    .addHelpText("after", FOOTER);

  root
    .command("run", { isDefault: true })
    .description("take events, deliver what the rules ask for, and stay up until SIGTERM or Ctrl-C")
    .addOption(dataOption())
    .option("--config <file>", "configuration; left out: the sample configuration")
    .option("--events <file>", "events to feed, as JSON Lines, - for standard input; left out: the GitHub samples")
    .option("--once", "end when every notification is delivered, deferred, dropped or dead")
    .option("--json", "with --once: the summary as JSON, the last line of standard output")
    .option("--chaos", "the local inbox misbehaves")
    .option("--host <address>", "where to listen", "127.0.0.1")
    .option("--port <number>", "which port to listen on, 0 for any", whole(0, 65_535), 4180)
    .addOption(
      new Option("--log-level <level>", "least serious message logged to standard error")
        .choices(["trace", "debug", "info", "warn", "error", "fatal", "silent"])
        .default(undefined, "warn on a terminal, info elsewhere"),
    )
    .allowExcessArguments() // a command that was mistyped arrives here
    .action(async (options: RunOptions, command: Command) => {
      const [strange] = command.args;
      if (strange !== undefined) command.error(`error: unknown command '${strange}'; --help lists them`);
      return (await import("./run.ts")).run(options, terminal);
    });

  root
    .command("check-config")
    .description("tell what is wrong with a configuration: with its form, then with what its parts say of each other")
    .argument("<file>", "the configuration")
    .action(async (file: string) => (await import("./check-config.ts")).checkConfigCommand(file, terminal));

  root
    .command("notification")
    .description("tell the history of a notification")
    .argument("<id>", "its id, such as ntf_Wm0bXy3eQm2uYF8kX1hT5A")
    .addOption(dataOption())
    .option("--json", "as JSON")
    .action(async (id: string, options: NotificationOptions) => {
      (await import("./notification.ts")).showNotification(id, options, terminal);
    });

  const dead = root.command("dead").description("notifications that were given up");
  const chosen = (command: Command): Command =>
    command
      .argument("[ids...]", "only these")
      .addOption(dataOption())
      .option("--user <id>", "only to this user")
      .option("--channel <name>", "only over this channel")
      .option("--rule <name>", "only by this rule")
      .option("--limit <number>", "at most so many", whole(1, 1_000_000), 1_000)
      .option("--json", "as JSON");
  chosen(dead.command("list"))
    .description("list them, in the order their events came")
    .action(async (ids: string[], options: DeadOptions) => {
      (await import("./dead.ts")).listDead({ ...options, ...some(ids) }, terminal);
    });
  chosen(dead.command("redrive"))
    .description("put them back in their queues; without --yes, only show which")
    .option("--all", "all of them")
    .option("--yes", "do it")
    .action(async (ids: string[], options: RedriveOptions) => {
      await (await import("./dead.ts")).redriveDead({ ...options, ...some(ids) }, terminal);
    });
  return root;
}

function dataOption(): Option {
  return new Option("--data <dir>", "folder of everything that must not be lost")
    .env("SLUICE_DATA")
    .default(DATA_FOLDER);
}

function some(ids: readonly string[]): { readonly ids?: readonly string[] } {
  return ids.length === 0 ? {} : { ids };
}

function whole(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (/^\d+$/.test(text) && value >= min && value <= max) return value;
    throw new InvalidArgumentError(`it must be a whole number from ${min} to ${max}.`);
  };
}
