/** The webhook payloads that GitHub publishes as examples (`@octokit/webhooks-examples`), as events. */
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import type { Json } from "@sluice/jobs";
import type { Event } from "../model.ts";

/** What the package has for one kind of event. */
interface Definition {
  readonly name: string;
  readonly examples: readonly Payload[];
}

type Payload = Readonly<Record<string, Json>>;

/** Every payload of every folder; one that a folder has twice comes twice, with one id. */
export async function* githubEvents(): AsyncGenerator<Event> {
  const root = fileURLToPath(new URL(".", import.meta.resolve("@octokit/webhooks-examples/package.json")));
  const folders = (await readdir(root)).filter((name) => existsSync(`${root}${name}/index.json`));
  for (const folder of folders.toSorted()) {
    const definitions = JSON.parse(await readFile(`${root}${folder}/index.json`, "utf8")) as readonly Definition[];
    for (const { name, examples } of definitions) yield* examples.map((payload) => toEvent(folder, name, payload));
  }
}

function toEvent(folder: string, name: string, payload: Payload): Event {
  const { action, repository } = payload;
  return {
    id: createHash("sha256")
      .update(JSON.stringify([folder, name, payload]))
      .digest("hex"),
    source: `https://github.com/webhooks/${folder}`,
    type: ["com.github", name, ...(typeof action === "string" ? [action] : [])].join("."),
    subject: fullName(repository),
    data: payload,
  };
}

function fullName(repository: Json | undefined): string | undefined {
  if (typeof repository !== "object" || repository === null || !("full_name" in repository)) return undefined;
  return typeof repository["full_name"] === "string" ? repository["full_name"] : undefined;
}
