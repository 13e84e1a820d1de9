// The entry points that the packages publish, as they were built.
import { globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

export interface Entry {
  /** `sluice`, `sluice/observe`, `@sluice/jobs`, … */
  readonly specifier: string;
  /** Of the package. */
  readonly folder: string;
  /** What the compiler is given. */
  readonly types: string;
}

interface Manifest {
  readonly name: string;
  readonly exports: Readonly<Record<string, string | { readonly types: string }>>;
}

/** For the packages of this repository alone, and no promise to anybody. */
const PRIVATE = "sluice/internal";

export function entriesOf(root = "."): Entry[] {
  return globSync("packages/*/package.json", { cwd: root })
    .toSorted()
    .flatMap((file) => {
      const { name, exports } = JSON.parse(readFileSync(join(root, file), "utf8")) as Manifest;
      const folder = dirname(file);
      return Object.entries(exports).flatMap(([key, target]) => {
        const specifier = join(name, key);
        if (typeof target === "string" || specifier === PRIVATE) return [];
        return [{ specifier, folder, types: join(folder, target.types) }];
      });
    });
}
