import type { LookupFunction } from "node:net";
import { expect, it } from "vitest";
import { SendError } from "./channel.ts";
import { checkTarget, guardedLookup, isPublic } from "./guard.ts";

it.each([
  ["1.1.1.1", true],
  ["2606:4700:4700::1111", true],
  ["0.0.0.0", false],
  ["10.1.2.3", false],
  ["100.64.0.1", false],
  ["127.0.0.1", false],
  ["169.254.169.254", false],
  ["172.16.0.1", false],
  ["192.0.0.1", false],
  ["192.0.2.1", false],
  ["192.168.0.1", false],
  ["198.18.0.1", false],
  ["203.0.113.1", false],
  ["224.0.0.1", false],
  ["240.0.0.1", false],
  ["255.255.255.255", false],
  ["::", false],
  ["::1", false],
  ["::7f00:1", false],
  ["::ffff:127.0.0.1", false],
  ["::ffff:1.1.1.1", false],
  ["64:ff9b::7f00:1", false],
  ["2001::1", false],
  ["2001:db8::1", false],
  ["2002:7f00:1::", false],
  ["fc00::1", false],
  ["fd12:3456::1", false],
  ["fe80::1", false],
  ["fe80::1%eth0", false],
  ["fec0::1", false],
  ["ff02::1", false],
  ["localhost", false],
  ["", false],
])("%s is public: %s", (address, expected) => {
  expect(isPublic(address)).toBe(expected);
});

it("hands on what the lookup finds, in the form that was asked for", () => {
  const addresses = [
    { address: "1.1.1.1", family: 4 },
    { address: "2606:4700:4700::1111", family: 6 },
  ];
  const guarded = guardedLookup((_hostname, options, callback) => {
    expect(options.all).toBe(true); // one of several must not hide the others
    callback(null, addresses);
  });
  const found: unknown[] = [];
  guarded("a.example", { all: true }, (...result) => found.push(result));
  guarded("a.example", {}, (...result) => found.push(result));
  expect(found).toEqual([
    [null, addresses],
    [null, "1.1.1.1", 4],
  ]);
});

it("fails when any of the addresses is an inner one, when there is none, and when the lookup fails", () => {
  const failed = Object.assign(new Error("not found"), { code: "ENOTFOUND" });
  const lookups: [LookupFunction, (error: unknown) => boolean][] = [
    [
      (_hostname, _options, callback) =>
        callback(null, [
          { address: "1.1.1.1", family: 4 },
          { address: "::1", family: 6 },
        ]),
      (error) => error instanceof SendError && error.kind === "permanent",
    ],
    [(_hostname, _options, callback) => callback(null, []), (error) => error instanceof SendError],
    [(_hostname, _options, callback) => callback(null, "10.0.0.1", 4), (error) => error instanceof SendError],
    [(_hostname, _options, callback) => callback(failed, ""), (error) => error === failed],
  ];
  for (const [lookup, expected] of lookups) {
    let error: unknown;
    guardedLookup(lookup)("a.example", { all: true }, (reason) => void (error = reason));
    expect(error).toSatisfy(expected);
  }
});

it("leaves inner addresses alone where they are allowed, but still wants a plain web address", () => {
  expect(checkTarget("http://127.0.0.1:8080/hook", false).port).toBe("8080");
  expect(() => checkTarget("http://127.0.0.1:8080/hook", true)).toThrow("127.0.0.1 is not a public address");
  expect(() => checkTarget("http://user:password@example.org/", false)).toThrow("must not hold a user or a password");
  expect(() => checkTarget("gopher://example.org/", false)).toThrow("only http: and https: are called");
});
