// Against the floor: the same class without a thought of names. What has none must cost the same in time and memory.
import { compare, weigh } from "../../../../bench/harness.ts";
import { register, type Stats } from "../internal/names.ts";
import { named } from "./named.ts";

class Plain {
  depth = 0;

  stats(): Stats {
    return { depth: this.depth };
  }
}

class Nameable extends Plain {
  constructor(name?: string) {
    super();
    register("nameable", { name }, this);
  }
}

class Unregistered extends Plain {
  readonly kind: string | undefined;

  constructor(kind?: string) {
    super();
    if (kind !== undefined) this.kind = kind;
  }
}

let last: Plain | undefined;

await compare("unnamed", 5_000_000, {
  sluice(ops) {
    for (let i = 0; i < ops; i += 1) last = new Nameable();
    return last;
  },
  floor(ops) {
    for (let i = 0; i < ops; i += 1) last = new Plain();
    return last;
  },
});

await weigh("unnamed-kept", 100_000, {
  sluice: (count) => Array.from({ length: count }, () => new Nameable()),
  floor: (count) => Array.from({ length: count }, () => new Plain()),
});

await weigh("named-kept", 100_000, {
  sluice: (count) => Array.from({ length: count }, (_, i) => new Nameable(`queue ${i}`)),
  floor: (count) => Array.from({ length: count }, (_, i) => new Unregistered(`queue ${i}`)),
});

const watched = Array.from({ length: 1_000 }, (_, i) => new Nameable(`limiter ${i}`));

await compare("named-list", 1_000, {
  sluice(ops) {
    let found = 0;
    for (let i = 0; i < ops; i += watched.length) found += named().length;
    return found;
  },
  floor(ops) {
    let found = 0;
    for (let i = 0; i < ops; i += watched.length) found += watched.map((each) => each.stats()).length;
    return found;
  },
});
