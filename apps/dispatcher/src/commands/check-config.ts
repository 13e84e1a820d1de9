/** `check-config FILE`: everything that is wrong with it, a line each. */
import { channelForms } from "../channels/forms.ts";
import { describeFault } from "../config/faults.ts";
import { checkConfigFile } from "../config/load.ts";
import { count } from "../report/numbers.ts";
import { CommandError, systemReason } from "./failure.ts";
import type { Terminal } from "./terminal.ts";

export async function checkConfigCommand(file: string, terminal: Terminal): Promise<void> {
  const faults = await checkConfigFile(file, [...channelForms.values()]).catch((error: unknown) => {
    throw new CommandError(`can't read the configuration ${file}: ${systemReason(error)}`, 2, { cause: error });
  });
  for (const fault of faults) terminal.print(describeFault(fault, file));
  if (faults.length > 0)
    throw new CommandError(`${count(faults.length)} ${faults.length === 1 ? "fault" : "faults"} in ${file}`, 2);
  terminal.print(`${file} is good`);
}
