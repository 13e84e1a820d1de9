// A shop in the rush before a holiday, with room for ten calls at a time. As the load rises, what is least missed goes
// first: suggestions, then the browsing; an order gets its turn as long as anything does.
import { AdaptiveLimiter, aimd, OverloadedError, shedByCriticality } from "sluice";

const backend = new AdaptiveLimiter(aimd(), {
  initialConcurrency: 10,
  shed: shedByCriticality({ sheddable: 0.8, normal: 1.5 }),
});

const rush = Promise.withResolvers<void>(); // until it is over, every call hangs
const kinds = { suggestion: "sheddable", page: "normal", order: "critical" } as const;

async function ask(kind: keyof typeof kinds): Promise<string> {
  try {
    await backend.run(() => rush.promise, { criticality: kinds[kind] });
    return "answered";
  } catch (error) {
    if (!(error instanceof OverloadedError)) throw error;
    return "turned away";
  }
}

const asked: { readonly kind: string; readonly outcome: Promise<string> }[] = [];
for (let n = 0; n < 10; n += 1)
  for (const kind of ["suggestion", "page", "order"] as const) asked.push({ kind, outcome: ask(kind) });

const { running, waiting, shed } = backend.stats();
console.log(`${running} run, ${waiting} wait, ${shed} were turned away`);
rush.resolve();

for (const each of Object.keys(kinds)) {
  const outcomes = await Promise.all(asked.filter(({ kind }) => kind === each).map(({ outcome }) => outcome));
  console.log(`${each}: ${outcomes.filter((outcome) => outcome === "answered").length} of ${outcomes.length} answered`);
}

// Prints:
// 10 run, 9 wait, 11 were turned away
// suggestion: 3 of 10 answered
// page: 6 of 10 answered
// order: 10 of 10 answered
