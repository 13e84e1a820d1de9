import type { Json } from "@sluice/jobs";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { channelForms } from "../channels/forms.ts";
import type { Content, Event, Planned, User } from "../model.ts";
import { compileTemplates, RenderError } from "./render.ts";

const forms = [...channelForms.values()];
const USER: User = {
  id: "ada",
  email: "ada@example.com",
  webhook: { url: "https://example.com", secret: "whsec_of-nobody" },
  roles: ["dev"],
  repositories: ["o/r"],
};
const PLANNED: Planned = { user: "ada", channel: "email", rule: "r", template: "t", overLimit: "defer" };
const EVENT: Event = { id: "1", source: "/s", type: "a.b", time: "2026-02-03T04:05:06Z", data: {} };

function render(channel: string, fields: Readonly<Record<string, string>>, data: Json): Content {
  const { renderer, faults } = compileTemplates({ t: { [channel]: fields } }, forms);
  expect(faults).toEqual([]);
  return renderer.render({ ...PLANNED, channel }, { ...EVENT, data }, USER);
}

/** A text that is all there is to the field. */
function text(source: string, data: Json = {}): string | undefined {
  return render("email", { subject: "", text: source }, data)["text"];
}

function asHtml(source: string, data: Json): string | undefined {
  return render("email", { subject: "", text: "", html: source }, data)["html"];
}

function faultOf(source: string): string | undefined {
  return compileTemplates({ t: { email: { subject: "", text: source } } }, forms).faults[0]?.message;
}

describe("what comes from outside", () => {
  const HOSTILE = `"}'</p><script>alert(1)</script>\r\nBcc: eve@example.com\u0000\u2028\ud800 {{ user.email }} {% raw %}`;

  it("adds no line to a subject", () => {
    const subject = render("email", { subject: "On {{ data.x }}!", text: "" }, { x: HOSTILE })["subject"];
    expect(subject).toMatch(/^On .*<\/script> Bcc: eve@example\.com .* \{\{ user\.email \}\} \{% raw %\}!$/);
    expect(subject).not.toMatch(/[\p{Cc}\u2028\ud800]/u);
  });

  it("adds no markup to HTML", () => {
    const html = render(
      "email",
      { subject: "", text: "", html: '<p title="{{ data.x }}">{{ data.x }}</p>' },
      { x: HOSTILE },
    );
    expect(html["html"]?.match(/[<>"]/g)?.join("")).toBe('<""></p>'.replace("</p>", "<>"));
    expect(html["html"]).not.toMatch(/<script|\0/);
  });

  it("leaves text as it is, but for what steers a terminal", () => {
    expect(text("{{ data.x }}", { x: "a <b> & \u001b[2J\nc" })).toBe("a <b> & [2J\nc");
  });

  it("adds no key to JSON, neither within quotes nor without, nor through the json filter", () => {
    const body = (source: string): unknown =>
      JSON.parse(render("webhook", { body: source }, { x: HOSTILE })["body"] ?? "");
    expect(body('{ "x": "{{ data.x }}", "y": {{ data.x | json }}, "z": {{ data | json }} }')).toEqual({
      x: HOSTILE.toWellFormed(),
      y: HOSTILE.toWellFormed(),
      z: { x: HOSTILE.toWellFormed() },
    });
    const unquoted = { x: '1, "admin": true' };
    expect(() => render("webhook", { body: '{ "x": {{ data.x }} }' }, unquoted)).toThrow(RenderError);
  });

  it("is no template itself", () => {
    expect(text("{{ data.x }}", { x: "{{ user.id }}{% if true %}yes{% endif %}" })).toBe(
      "{{ user.id }}{% if true %}yes{% endif %}",
    );
  });

  it("is escaped in whatever way it is put out", () => {
    const data = { x: "<b>", list: ["<i>"], o: { "<u>": 1 } };
    for (const source of [
      "{{ data.x }}",
      "{% echo data.x %}",
      "{% assign y = data.x %}{{ y }}",
      "{% for each in data.list %}{{ each }}{% endfor %}",
      "{{ data.none | default: data.x }}",
      '{{ "" | append: data.x }}',
      "{{ data.list }}",
      "{{ data.o }}",
      "{{ data.x | json }}",
      '{{ data.list | join: ", " }}',
    ]) {
      expect(asHtml(source, data)).toMatch(/&#60;[biu]&#62;/);
      expect(asHtml(source, data)).not.toMatch(/[<>]/);
    }
  });

  it("stays whole and harmless in every field, whatever it is", () => {
    const fields = { subject: "{{ data.x }}", text: "", html: "{{ data.x }}" };
    const body = '["{{ data.x }}", {{ data.x | json }}]';
    const { renderer } = compileTemplates({ t: { email: fields, webhook: { body } } }, forms);
    const code = fc.oneof(
      fc.nat(0xffff),
      fc.constantFrom(...Array.from("\r\n\0\"'<>&{}%\\\u2028\ud800", (c) => c.charCodeAt(0))),
    );
    const anyText = fc.array(code, { maxLength: 20 }).map((codes) => String.fromCharCode(...codes));
    const harmless = fc.property(anyText, (x) => {
      const [mail, hook] = ["email", "webhook"].map((channel) =>
        renderer.render({ ...PLANNED, channel }, { ...EVENT, data: { x } }, USER),
      );
      expect(mail?.["subject"]).not.toMatch(/[\p{Cc}\u2028\u2029]/u);
      expect(mail?.["html"]).not.toMatch(/[<>"'\0]|&(?!#\d+;)/);
      expect(JSON.parse(hook?.["body"] ?? "")).toEqual([x.toWellFormed(), x.toWellFormed()]);
    });
    fc.assert(harmless, { numRuns: 300 });
  });
});

it("renders what is missing as nothing", () => {
  expect(text("[{{ data.a.b.c }}{{ nothing }}{{ data.n }}{{ data.list[3].x }}]", { n: null, list: [] })).toBe("[]");
});

it("renders numbers and booleans as text, lists and objects as JSON", () => {
  expect(
    text("{{ data.n }} {{ data.b }} {{ data.l }} {{ data.o }}", { n: 0, b: false, l: [1, "a"], o: { a: null } }),
  ).toBe('0 false [1,"a"] {"a":null}');
});

it("shows the event, its data, the user, the rule and the channel, and no secret", () => {
  expect(
    text("{{ event.id }} {{ event.source }} {{ event.type }} {{ user.id }} {{ user.email }} {{ rule }} {{ channel }}"),
  ).toBe("1 /s a.b ada ada@example.com r email");
  expect(text("{{ user }}{{ user.webhook.secret }}{{ event }}")).not.toMatch(/whsec/);
});

it("writes dates in UTC, wherever it runs", () => {
  expect(text('{{ event.time | date: "%Y-%m-%d %H:%M %z" }}')).toBe("2026-02-03 04:05 +0000");
});

it("folds the white space of a subject, also what the template itself has", () => {
  const { subject } = render("email", { subject: "\n  a\t{{ data.x }}\n b \n", text: "" }, { x: "x  y" });
  expect(subject).toBe("a x y b");
});

it.each([
  "data.constructor",
  "data.__proto__",
  "data.x.constructor.name",
  "user.hasOwnProperty",
  "data.list.constructor",
])("sees nothing at %s", (path) => {
  expect(text(`[{{ ${path} }}]`, { x: "text", list: [] })).toBe("[]");
});

it.each([
  ['{% include "file" %}', "include"],
  ['{% render "file" %}', "render"],
  ['{% layout "file" %}', "layout"],
  ["{% capture x %}{% endcapture %}", "capture"],
  ["{{ x | raw }}", "raw"],
  ["{{ x | escape }}", "escape"],
  ['{{ data.list | where_exp: "x", data.code }}', "where_exp"],
  ["{{ data.list | sample }}", "sample"],
  ["{{ x | upcsae }}", "upcsae"],
])("does not compile %s", (source, name) => {
  expect(faultOf(source)).toContain(name);
});

it("compiles what is good though something else is not", () => {
  const { renderer, faults } = compileTemplates(
    { bad: { email: { subject: "{{", text: "" } }, good: { email: { subject: "x", text: "y" } } },
    forms,
  );
  expect(faults).toMatchObject([{ template: "bad", channel: "email", field: "subject" }]);
  expect(renderer.render({ ...PLANNED, template: "good" }, EVENT, USER)).toEqual({ subject: "x", text: "y" });
});

it("says which field of which template failed, and why", () => {
  expect(() => render("webhook", { body: "{{ data.x }}" }, { x: "no" })).toThrow(
    expect.objectContaining({
      code: "RENDER_FAILED",
      template: "t",
      channel: "webhook",
      field: "body",
      message: expect.stringMatching(/^template t, webhook\.body: the result is not JSON: /) as string,
    }),
  );
  const { renderer } = compileTemplates({}, forms);
  expect(() => renderer.render({ ...PLANNED, template: "gone" }, EVENT, USER)).toThrow(
    "template gone, email.*: there is no such template",
  );
});

it("gives up a field of more than a million characters, from few loops as from one long value", () => {
  const list = Array.from({ length: 1_000 }, () => "x".repeat(100));
  const nested = "{% for a in data.list %}{% for b in data.list %}{{ b }}{% endfor %}{% endfor %}";
  expect(() => text(nested, { list })).toThrow("must come to at most 1000000 characters");
  expect(text("{{ data.x }}", { x: "x".repeat(1_000_000) })?.length).toBe(1_000_000);
  expect(() => text("{{ data.x }}", { x: "x".repeat(1_000_001) })).toThrow("at most 1000000 characters");
  expect(() => text("{{ data.x }}y", { x: "x".repeat(1_000_000) })).toThrow("at most 1000000 characters");
});

it("gives up a template that asks for more memory than any message needs", () => {
  expect(() => text("{% for i in (1..100000000) %}{% endfor %}")).toThrow("memory alloc limit exceeded");
});

it("keeps the outcomes of two renderings apart after one that failed", () => {
  const { renderer } = compileTemplates({ t: { email: { subject: "", text: "{{ data.x }}" } } }, forms);
  expect(() => renderer.render(PLANNED, { ...EVENT, data: { x: "x".repeat(2_000_000) } }, USER)).toThrow(RenderError);
  expect(renderer.render(PLANNED, { ...EVENT, data: { x: "ok" } }, USER)).toEqual({ subject: "", text: "ok" });
});
