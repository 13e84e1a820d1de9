import { expect, it } from "vitest";
import { publicId } from "./public-id.ts";

const event = { source: "here", id: "1" };
const planned = { rule: "r", user: "u", channel: "c", template: "t", overLimit: "defer" } as const;

it("is the same for the same event, rule, user and channel, whatever the template", () => {
  expect(publicId(event, planned)).toBe(publicId({ ...event }, { ...planned, template: "other", overLimit: "drop" }));
  expect(publicId(event, planned)).toMatch(/^ntf_[\w-]{22}$/);
});

it("differs where any of them does, also where one ends like the next begins", () => {
  const ids = [
    publicId(event, planned),
    publicId({ source: "here1", id: "" }, planned),
    publicId({ source: "her", id: "e1" }, planned),
    publicId(event, { ...planned, rule: "ru", user: "" }),
    publicId(event, { ...planned, user: "uc", channel: "" }),
    publicId(event, { ...planned, channel: "d" }),
  ];
  expect(new Set(ids).size).toBe(ids.length);
});
