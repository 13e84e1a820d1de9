/**
 * What every driver must do, as cases for any test runner:
 *
 *     for (const { title, run } of storeCases(open)) it(title, run);
 */
import { adding } from "./adding.ts";
import type { Facts, OpenStore, StoreCase } from "./case.ts";
import { claiming } from "./claiming.ts";
import { lookingAfter } from "./looking-after.ts";
import { modelCases } from "./model.ts";
import { reading } from "./reading.ts";
import { recovering } from "./recovering.ts";
import { refusing } from "./refusing.ts";
import { settling } from "./settling.ts";
import { unique } from "./unique.ts";

export type { OpenedStore, OpenStore, StoreCase } from "./case.ts";

export function storeCases(open: OpenStore): StoreCase[] {
  const facts = [adding, unique, claiming, settling, recovering, reading, lookingAfter, refusing, modelCases];
  return facts.flatMap((group) => toCases(group, open));
}

function toCases(facts: Facts, open: OpenStore): StoreCase[] {
  return Object.entries(facts).map(([title, value]) => {
    const { options, fact } = typeof value === "function" ? { options: {}, fact: value } : value;
    const run = async (): Promise<void> => {
      const opened = await open(options);
      try {
        await fact(opened);
      } finally {
        await opened.dispose();
      }
    };
    return { title, run };
  });
}
