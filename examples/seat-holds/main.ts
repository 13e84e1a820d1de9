// The three ways in which a hold may end, side by side. With the argument `costs`: what 10,000 holds cost on this machine.
import { KINDS } from "./open.ts";
import { examineAll } from "./comparison.ts";
import { printCosts } from "./costs.ts";

if (process.argv[2] === "costs") await printCosts();
else {
  const found = await examineAll();
  console.log(row("", KINDS));
  for (const name of found[0]?.keys() ?? [])
    console.log(
      row(
        name,
        found.map((each) => each.get(name) ?? ""),
      ),
    );
}

function row(name: string, cells: readonly string[]): string {
  return [name.padEnd(36), ...cells.map((cell) => cell.padStart(13))].join("");
}

// Prints:
//                                             sweep  delay queue          job
// late at expiry, mean of 60                   31 s          0 s          0 s
// late at expiry, at most                      60 s          0 s          0 s
// ends after its process was killed             yes           no          yes
// tells again after that failed                  no           no          yes
// wall clock 3 min forward: held for          2 min        5 min        2 min
// wall clock 3 min back: held for             8 min        5 min        8 min
// wake-ups in a minute, nothing over              1            0           20
