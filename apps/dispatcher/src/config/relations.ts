/** What must hold between the parts of a configuration: each name used is given somewhere, each rule can reach somebody. */
import type { ChannelForm } from "../channels/channel.ts";
import type { Event, Planned, User } from "../model.ts";
import { idleRules, indexRules } from "../rules/match.ts";
import { compileTemplates, type Renderer, RenderError } from "../rules/render.ts";
import type { Config, Rule } from "./config.ts";
import { type Fault, type FaultPath as Path, show } from "./faults.ts";

export function relationFaults(config: Config, channels: readonly ChannelForm[]): Fault[] {
  const ids = config.users.map(({ id }) => id);
  const names: Names = {
    users: new Set(ids),
    roles: new Set(config.users.flatMap(({ roles }) => roles)),
    channels: new Set(channels.map(({ name }) => name)),
    idle: new Set(idleRules(indexRules(config, channels))),
  };
  return [
    ...repeated("users", "id", ids),
    ...repeated(
      "rules",
      "name",
      config.rules.map(({ name }) => name),
    ),
    ...config.rules.flatMap((rule, i) => ruleFaults(rule, ["rules", i], config, names)),
    ...templateFaults(config.templates, channels),
    ...limitFaults(config, names),
  ];
}

interface Names {
  readonly users: ReadonlySet<string>;
  readonly roles: ReadonlySet<string>;
  readonly channels: ReadonlySet<string>;
  readonly idle: ReadonlySet<Rule>;
}

function fault(path: Path, message: string): Fault {
  return { path, message };
}

function repeated(list: string, key: string, values: readonly string[]): Fault[] {
  const first = new Map<string, number>();
  return values.flatMap((value, i) => {
    const earlier = first.get(value);
    if (earlier !== undefined) return [fault([list, i, key], `must be unique, ${show(value)} is ${list}[${earlier}]`)];
    first.set(value, i);
    return [];
  });
}

function ruleFaults(rule: Rule, path: Path, config: Config, names: Names): Fault[] {
  const { to, channels } = rule;
  const found = [
    ...unknown([...path, "to", "users"], to.users ?? [], names.users, "must be the id of a user"),
    ...unknown([...path, "to", "roles"], to.roles ?? [], names.roles, "must be a role that some user has"),
    ...unknown([...path, "channels"], channels, names.channels, `must be a channel (${listChannels(names)})`),
    ...usedTemplateFaults(rule, [...path, "template"], config.templates, names),
  ];
  if (new Set(channels).size < channels.length) {
    found.push(fault([...path, "channels"], `must name each channel once, got ${show(channels)}`));
  }
  if (found.length === 0 && names.idle.has(rule)) {
    const message = `must reach somebody: nobody it names has an address for ${channels.join(" or ")}`;
    found.push(fault([...path, "to"], message));
  }
  return found;
}

function usedTemplateFaults(rule: Rule, path: Path, templates: Config["templates"], names: Names): Fault[] {
  const { template } = rule;
  const byChannel = Object.hasOwn(templates, template) ? templates[template] : undefined;
  if (byChannel === undefined) return [fault(path, `must be a template, got ${show(template)}`)];
  const lacking = rule.channels.filter((name) => names.channels.has(name) && !Object.hasOwn(byChannel, name));
  return lacking.map((name) => fault(path, `must have fields for the channel ${name}, got ${show(template)}`));
}

function unknown(path: Path, values: readonly string[], known: ReadonlySet<string>, rule: string): Fault[] {
  return values.flatMap((value, i) => (known.has(value) ? [] : [fault([...path, i], `${rule}, got ${show(value)}`)]));
}

function templateFaults(templates: Config["templates"], channels: readonly ChannelForm[]): Fault[] {
  const byName = new Map(channels.map((channel) => [channel.name, channel]));
  const { renderer, faults } = compileTemplates(templates, channels);
  const found = faults.map(({ template, channel, field, message }) =>
    fault(["templates", template, channel, field], `must compile: ${message}`),
  );
  for (const [template, byChannel] of Object.entries(templates)) {
    for (const [name, fields] of Object.entries(byChannel)) {
      const path = ["templates", template, name];
      const channel = byName.get(name);
      if (channel === undefined) found.push(fault(path, `is no channel; known are ${[...byName.keys()].join(", ")}`));
      else found.push(...fieldFaults(channel, fields, path));
    }
  }
  // What does not compile is not there to be tried.
  return found.length > 0 ? found : Object.keys(templates).flatMap((name) => trialFaults(name, templates, renderer));
}

function fieldFaults({ fields }: ChannelForm, given: Readonly<Record<string, string>>, path: Path): Fault[] {
  const known = [...fields.required, ...fields.optional];
  const missing = fields.required.filter((field) => !Object.hasOwn(given, field));
  const strange = Object.keys(given).filter((field) => !known.includes(field));
  return [
    ...missing.map((field) => fault([...path, field], "is missing")),
    ...strange.map((field) => fault([...path, field], `is not known; known are ${known.join(", ")}`)),
  ];
}

const BARE_EVENT: Event = { id: "0", source: "/", type: "none", data: {} };
const BARE_USER: User = { id: "nobody", roles: [], repositories: [] };

/** A template that fails for want of a value would lose the first notification whose event lacks it. */
function trialFaults(template: string, templates: Config["templates"], renderer: Renderer): Fault[] {
  return Object.keys(templates[template] ?? {}).flatMap((channel) => {
    const planned: Planned = { user: BARE_USER.id, channel, rule: "none", template, overLimit: "defer" };
    try {
      renderer.render(planned, BARE_EVENT, BARE_USER);
      return [];
    } catch (error) {
      if (!(error instanceof RenderError)) throw error;
      const message = `must also stand an event without data: ${error.why}`;
      return [fault(["templates", template, channel, error.field], message)];
    }
  });
}

function limitFaults({ limits, intake }: Config, names: Names): Fault[] {
  const strange = Object.keys(limits.concurrency).filter((name) => !names.channels.has(name));
  return [
    ...strange.map((name) => fault(["limits", "concurrency", name], `is no channel; known are ${listChannels(names)}`)),
    ...atMost("limits", limits, "attemptTimeoutMs", "deadlineMs"),
    ...atMost("limits", limits, "retryBaseMs", "retryMaxMs"),
    ...atMost("intake", intake, "maxEventBytes", "maxBodyBytes"),
    ...atMost("intake", intake, "maxBatch", "capacity"),
  ];
}

function atMost<K extends string>(part: string, values: Readonly<Record<K, number>>, less: K, more: K): Fault[] {
  if (values[less] <= values[more]) return [];
  return [fault([part, less], `must be <= ${more} (${values[more]}), got ${values[less]}`)];
}

function listChannels({ channels }: Names): string {
  return [...channels].join(", ");
}
