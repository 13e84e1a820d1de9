/** Makes the content of a notification out of an event. */
import type { Template } from "liquidjs";
import type { ChannelForm } from "../channels/channel.ts";
import type { Config } from "../config/config.ts";
import type { Content, Event, Planned, User } from "../model.ts";
import { Language, type Scope } from "./liquid.ts";

/** The template cannot be rendered for this event, and never will be: what failed is no provider's fault. */
export class RenderError extends Error {
  override readonly name = "RenderError";
  readonly code = "RENDER_FAILED";
  readonly template: string;
  readonly channel: string;
  readonly field: string;
  readonly why: string;

  constructor(at: FieldPath, why: string, options?: ErrorOptions) {
    super(`template ${at.template}, ${at.channel}.${at.field}: ${why}`, options);
    this.why = why;
    this.template = at.template;
    this.channel = at.channel;
    this.field = at.field;
  }
}

export interface FieldPath {
  readonly template: string;
  readonly channel: string;
  readonly field: string;
}

export interface TemplateFault extends FieldPath {
  readonly message: string;
}

export interface Renderer {
  /** Throws `RenderError`. */
  render(planned: Planned, event: Event, user: User): Content;
}

interface CompiledField extends FieldPath {
  readonly language: Language;
  readonly parsed: Template[];
  readonly format: "line" | "json" | undefined;
}

/** Compiles every template; a fault in one of them leaves it out and is told. */
export function compileTemplates(
  templates: Config["templates"],
  channels: readonly ChannelForm[],
): { readonly renderer: Renderer; readonly faults: readonly TemplateFault[] } {
  const compiled = new Map<string, CompiledField[]>();
  const faults: TemplateFault[] = [];
  const languages = new Map(channels.map((channel) => [channel.name, languagesOf(channel)]));
  for (const at of fieldPaths(templates)) {
    const language = languages.get(at.channel)?.get(at.field);
    if (language === undefined) continue; // no such field: told by who checks the names
    try {
      const key = keyOf(at.template, at.channel);
      const fields = compiled.get(key) ?? [];
      fields.push({ ...at, ...language, parsed: language.language.compile(at.source) });
      compiled.set(key, fields);
    } catch (error) {
      faults.push({ template: at.template, channel: at.channel, field: at.field, message: liquidMessage(error) });
    }
  }
  return { renderer: { render: (planned, event, user) => render(compiled, planned, event, user) }, faults };
}

function render(
  compiled: ReadonlyMap<string, readonly CompiledField[]>,
  planned: Planned,
  event: Event,
  user: User,
): Content {
  const scope = scopeOf(planned, event, user);
  const fields = compiled.get(keyOf(planned.template, planned.channel));
  if (fields === undefined) {
    throw new RenderError({ ...planned, field: "*" }, "there is no such template for this channel");
  }
  return Object.fromEntries(fields.map((field) => [field.field, renderField(field, scope)]));
}

function renderField(field: CompiledField, scope: Scope): string {
  let text: string;
  try {
    text = field.language.render(field.parsed, scope);
  } catch (error) {
    throw new RenderError(field, liquidMessage(error), { cause: error });
  }
  if (field.format === "line") return text.replace(/\s+/g, " ").trim();
  if (field.format === "json") checkJson(field, text);
  return text;
}

function checkJson(field: CompiledField, text: string): void {
  try {
    JSON.parse(text);
  } catch (error) {
    throw new RenderError(field, `the result is not JSON: ${String(error)}`, { cause: error });
  }
}

/** What a template can read. The user's webhook secret is not among it. */
function scopeOf(planned: Planned, { data, ...event }: Event, user: User): Scope {
  const { id, email, roles, repositories } = user;
  return { event, data, user: { id, email, roles, repositories }, rule: planned.rule, channel: planned.channel };
}

type FieldLanguageAndFormat = Pick<CompiledField, "language" | "format">;

function languagesOf(channel: ChannelForm): Map<string, FieldLanguageAndFormat> {
  const { fields } = channel;
  const names = [...fields.required, ...fields.optional];
  return new Map(
    names.map((name) => {
      const format = fields.formats?.[name];
      const language = new Language({ escape: (value) => channel.escape(name, value), isJson: format === "json" });
      return [name, { language, format }];
    }),
  );
}

function* fieldPaths(templates: Config["templates"]): Generator<FieldPath & { readonly source: string }> {
  for (const [template, byChannel] of Object.entries(templates)) {
    for (const [channel, fields] of Object.entries(byChannel)) {
      for (const [field, source] of Object.entries(fields)) yield { template, channel, field, source };
    }
  }
}

function keyOf(template: string, channel: string): string {
  return JSON.stringify([template, channel]);
}

/** Without the excerpt of the source that Liquid adds below. */
function liquidMessage(error: unknown): string {
  const [first = ""] = (error instanceof Error ? error.message : String(error)).split("\n");
  return first;
}
