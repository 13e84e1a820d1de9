/** The page as browsers take it: its files by their path, made from the sources. */
import { build } from "vite";

export async function bundle(): Promise<ReadonlyMap<string, string>> {
  const built = await build({
    root: import.meta.dirname,
    configFile: false,
    logLevel: "warn",
    resolve: { conditions: ["@sluice/source"] },
    build: { write: false, modulePreload: { polyfill: false } },
  });
  if (!("output" in built)) throw new TypeError("vite did not build a page");
  return new Map(
    built.output.map((file) => [
      file.fileName === "index.html" ? "/" : `/${file.fileName}`,
      file.type === "chunk" ? file.code : String(file.source),
    ]),
  );
}
