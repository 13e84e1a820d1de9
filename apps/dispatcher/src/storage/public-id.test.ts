import { expect, it } from "vitest";
import { publicId } from "./public-id.ts";

const event = { source: "here", id: "1", type: "thing", data: {} };
const planned = { rule: "r", user: "u", channel: "c", template: "t", overLimit: "defer" } as const;

it("is the same for the same event, rule, user and channel, whatever the template", () => {
  expect(publicId(5, event, planned)).toBe(publicId(5, { ...event }, { ...planned, template: "x", overLimit: "drop" }));
  expect(publicId(5, event, planned)).toMatch(/^ntf_0000005[\w-]{15}$/);
});

it("differs where any of them does, also where one ends like the next begins", () => {
  const ids = [
    publicId(5, event, planned),
    publicId(6, event, planned),
    publicId(5, { ...event, source: "here1", id: "" }, planned),
    publicId(5, { ...event, source: "her", id: "e1" }, planned),
    publicId(5, event, { ...planned, rule: "ru", user: "" }),
    publicId(5, event, { ...planned, user: "uc", channel: "" }),
    publicId(5, event, { ...planned, channel: "d" }),
  ];
  expect(new Set(ids).size).toBe(ids.length);
});

it("comes in the order of the events", () => {
  const ids = [1, 35, 36, 1_000, 36 ** 4].map((row) => publicId(row, event, planned));
  expect(ids).toEqual(ids.toSorted());
});
