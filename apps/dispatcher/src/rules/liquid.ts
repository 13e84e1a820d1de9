/**
 * The template language: Liquid without what reaches outside the template (includes, prototypes, chance) and without
 * what would let something from outside stand unescaped. Every `{{ … }}` is escaped for its field, last of all.
 */
import { Liquid, type LiquidOptions, type Template } from "liquidjs";

export interface FieldLanguage {
  /** Escapes what comes from outside. */
  escape(value: string): string;
  /** Whether `{{ x | json }}` stands for itself: where the field is JSON, quotes and all. */
  readonly isJson: boolean;
}

/** All others are refused when the template is compiled: `raw`, the `…_exp` filters that compile their argument, `sample`. */
const FILTERS: ReadonlySet<string> = new Set(
  [
    "append capitalize downcase upcase lstrip rstrip strip strip_newlines prepend remove remove_first replace",
    "replace_first size slice split truncate truncatewords url_encode",
    "compact concat first join last map reverse sort sort_natural sum uniq where",
    "abs at_least at_most ceil divided_by floor minus modulo plus round times",
    "date default",
  ].flatMap((line) => line.split(" ")),
);

/** No `capture`: what it holds has been escaped, and would be once more. */
const TAGS: ReadonlySet<string> = new Set("assign break case comment continue echo for if raw unless #".split(" "));

/** Runaway guards: far above what a template of a message takes, so that a slow machine never meets them. */
const OPTIONS: LiquidOptions = {
  parseLimit: 100_000,
  renderLimit: 2_000,
  memoryLimit: 5_000_000,
  ownPropertyOnly: true,
  strictFilters: true,
  templates: {},
  timezoneOffset: 0,
  locale: "en-US",
};

/** Of one finished field. */
const MAX_CHARS = 1_000_000;

export type Scope = Readonly<Record<string, unknown>>;

export class Language {
  readonly #engine: Liquid;
  readonly #field: FieldLanguage;
  /** Of the field being rendered, which happens in one turn. */
  #left = 0;

  constructor(field: FieldLanguage) {
    this.#field = field;
    this.#engine = new Liquid({ ...OPTIONS, outputEscape: (value: unknown) => this.#output(value) });
    for (const name of Object.keys(this.#engine.filters)) {
      if (!FILTERS.has(name)) this.#engine.unregisterFilter(name);
    }
    for (const name of Object.keys(this.#engine.tags)) {
      if (!TAGS.has(name)) delete this.#engine.tags[name];
    }
    this.#engine.registerFilter("json", {
      raw: field.isJson,
      handler: (value: unknown) => this.#spend(jsonText(value)),
    });
  }

  /** Throws for what is not a template. */
  compile(source: string): Template[] {
    return this.#engine.parse(source);
  }

  render(template: Template[], scope: Scope): string {
    this.#left = MAX_CHARS;
    const text = String(this.#engine.renderSync(template, scope));
    if (text.length > MAX_CHARS) throw tooLong();
    return text;
  }

  #output(value: unknown): string {
    if (value === undefined || value === null) return "";
    return this.#spend(this.#field.escape(typeof value === "string" ? value : jsonText(value)));
  }

  #spend(text: string): string {
    this.#left -= text.length;
    if (this.#left < 0) throw tooLong();
    return text;
  }
}

/** JSON can say half a character (`\ud800`), which many a reader refuses. */
function jsonText(value: unknown): string {
  const text = JSON.stringify(value) ?? "null";
  return text.replaceAll(/\\(ud[89a-f][\da-f]{2}|.)/g, (whole, escaped: string) =>
    escaped.length > 1 ? "\uFFFD" : whole,
  );
}

function tooLong(): RangeError {
  return new RangeError(`must come to at most ${MAX_CHARS} characters`);
}
