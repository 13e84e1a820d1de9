import { expect, it } from "vitest";
import { whenSettled } from "./when-settled.ts";

type Back = (value: number) => unknown;

it("goes on in the turn in which await would, for values, promises and thenables", async () => {
  const thenable = { then: (resolve: Back) => void resolve(3) }; // oxlint-disable-line unicorn/no-thenable -- its subject
  const log: string[] = [];
  for (const [id, result] of [1, Promise.resolve(2), thenable].entries()) {
    void (async () => {
      await result;
      log.push(`await ${id}`);
    })();
    void whenSettled<unknown, unknown>(result, () => log.push(`settled ${id}`), failed);
  }
  await new Promise((resolve) => void setImmediate(resolve));
  expect(log).toEqual(["await 0", "settled 0", "await 1", "settled 1", "await 2", "settled 2"]);
});

it("gives what the one that was called returns or throws", async () => {
  expect(await whenSettled(2, (value) => value * 2, failed)).toBe(4);
  expect(await whenSettled(Promise.reject(new Error("no")), failed, () => "caught")).toBe("caught");
  await expect(whenSettled(1, failed, failed)).rejects.toThrow("failed");
});

function failed(): never {
  throw new Error("failed");
}
