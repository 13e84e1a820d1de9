import * as fc from "fast-check";
import { expect, it } from "vitest";
import { channelForms, emailForm, webhookForm } from "./forms.ts";

const anything = fc.string({ unit: "binary" });

it("makes one line of a subject, whatever is in it", () => {
  const holds = fc.property(anything, (value) => !/[\p{Cc}\p{Zl}\p{Zp}]/u.test(emailForm.escape("subject", value)));
  fc.assert(holds, { examples: [["a\r\nBcc: b@example.com"], ["a\u2028b"]] });
  expect(emailForm.escape("subject", "a\r\nBcc: b@example.com")).toBe("a Bcc: b@example.com");
});

it("leaves nothing in HTML that could end a text or an attribute", () => {
  fc.assert(fc.property(anything, (value) => !/[<>"']/.test(emailForm.escape("html", value))));
  expect(emailForm.escape("html", `<a href='x' title="y">&amp;`)).toBe(
    "&#60;a href=&#39;x&#39; title=&#34;y&#34;&#62;&#38;amp;",
  );
});

it("keeps text as it is, but for control characters and the ends of lines", () => {
  expect(emailForm.escape("text", "<a> & 'b'\t\r\nc\rd\u0007\u001b[2J\0")).toBe("<a> & 'b'\t\nc\nd[2J");
});

it("lets any value stand between the quotes of a JSON string", () => {
  const holds = fc.property(anything, (value) => {
    const parsed: unknown = JSON.parse(`"${webhookForm.escape("body", value)}"`);
    return parsed === value.toWellFormed();
  });
  fc.assert(holds, { examples: [['"},{"'], ["\\"], ["\ud800"]] });
});

it("is told by its channel's name, and knows its channel's fields alone", () => {
  for (const [name, form] of channelForms) {
    expect(form.name).toBe(name);
    for (const field of [...form.fields.required, ...form.fields.optional]) form.escape(field, "x");
    expect(() => form.escape("to", "x")).toThrow(
      new RangeError(`field must be one of the ${name} channel's, got "to"`),
    );
  }
});
