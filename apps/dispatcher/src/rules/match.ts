/**
 * Which users an event reaches, over which channels and by which rule. Everything that does not depend on the event is
 * worked out once: an event costs its candidate rules and the people it reaches, not all rules and all users.
 *
 * Where several rules bring the same event to the same user over the same channel, the first in file order does it.
 */
import type { ChannelForm } from "../channels/channel.ts";
import type { Config, Rule } from "../config/config.ts";
import type { Event, Planned, User } from "../model.ts";
import { compilePath, type Path, textAt } from "./path.ts";
import { compilePattern, isLiteral, type Pattern } from "./pattern.ts";

export interface RuleIndex {
  readonly users: ReadonlyMap<string, User>;
  readonly rules: readonly CompiledRule[];
  /** For each type that a rule names in full: every rule that may match it, in file order. */
  readonly byType: ReadonlyMap<string, readonly CompiledRule[]>;
  /** For every other type: the rules whose types are patterns, or that ask for none. */
  readonly open: readonly CompiledRule[];
}

interface CompiledRule {
  readonly rule: Rule;
  readonly takesType: Pattern;
  /** All must hold; the type is among them. */
  readonly tests: readonly ((event: Event) => boolean)[];
  readonly repositoryAt: Path | undefined;
  readonly audiences: readonly Audience[];
}

/** Those whom a rule can reach over one channel. */
interface Audience {
  readonly channel: string;
  /** By name and by role. */
  readonly always: readonly string[];
  readonly followers: ReadonlyMap<string, readonly string[]>;
}

export function indexRules(config: Pick<Config, "users" | "rules">, channels: readonly ChannelForm[]): RuleIndex {
  const reachable = new Map(channels.map((channel) => [channel.name, reachableBy(channel, config.users)]));
  const rules = config.rules.map((rule) => compileRule(rule, reachable));
  const literals = new Set(config.rules.flatMap(({ when }) => when.type?.filter(isLiteral) ?? []));
  return {
    users: new Map(config.users.map((user) => [user.id, user])),
    rules,
    byType: new Map([...literals].map((type) => [type, rules.filter(({ takesType }) => takesType(type))])),
    open: rules.filter(({ rule }) => rule.when.type?.every(isLiteral) !== true),
  };
}

/** In file order of the rules, then in their order of channels; each user once for a channel. */
export function plan(event: Event, index: RuleIndex): Planned[] {
  const planned: Planned[] = [];
  const reached = new Map<string, Set<string>>();
  for (const compiled of index.byType.get(event.type) ?? index.open) {
    if (!compiled.tests.every((test) => test(event))) continue;
    const { name, template, overLimit } = compiled.rule;
    for (const { channel, always, followers } of compiled.audiences) {
      const taken = reached.get(channel) ?? new Set();
      reached.set(channel, taken);
      for (const users of [always, followersAt(event, compiled.repositoryAt, followers)]) {
        for (const user of users) {
          if (taken.has(user)) continue;
          taken.add(user);
          planned.push({ user, channel, rule: name, template, overLimit });
        }
      }
    }
  }
  return planned;
}

/** The rules that reach nobody, whatever the event. */
export function idleRules(index: RuleIndex): Rule[] {
  const idle = index.rules.filter(({ repositoryAt, audiences }) =>
    audiences.every(
      ({ always, followers }) => always.length === 0 && (repositoryAt === undefined || followers.size === 0),
    ),
  );
  return idle.map(({ rule }) => rule);
}

function followersAt(event: Event, path: Path | undefined, followers: Audience["followers"]): readonly string[] {
  const repository = path === undefined ? undefined : textAt(event.data, path);
  return (repository === undefined ? undefined : followers.get(repository)) ?? [];
}

/** Whom a channel can reach, found by id, by role and by repository; in file order. */
interface Reachable {
  readonly channel: string;
  readonly ids: ReadonlySet<string>;
  readonly byRole: ReadonlyMap<string, readonly string[]>;
  readonly byRepository: ReadonlyMap<string, readonly string[]>;
}

function reachableBy(channel: ChannelForm, users: readonly User[]): Reachable {
  const reached = users.filter((user) => channel.addressOf(user) !== undefined);
  return {
    channel: channel.name,
    ids: new Set(reached.map(({ id }) => id)),
    byRole: groupBy(reached, ({ roles }) => roles),
    byRepository: groupBy(reached, ({ repositories }) => repositories),
  };
}

function groupBy(users: readonly User[], keysOf: (user: User) => readonly string[]): Map<string, string[]> {
  const groups = new Map<string, string[]>();
  for (const user of users) {
    for (const key of new Set(keysOf(user))) {
      const group = groups.get(key);
      if (group === undefined) groups.set(key, [user.id]);
      else group.push(user.id);
    }
  }
  return groups;
}

function compileRule(rule: Rule, reachable: ReadonlyMap<string, Reachable>): CompiledRule {
  const { when, to } = rule;
  const takesType = when.type === undefined ? () => true : anyOf(when.type);
  const takesSource = when.source === undefined ? () => true : anyOf(when.source);
  const tests = Object.entries(when.data ?? {}).map(([path, sources]) => dataTest(compilePath(path), anyOf(sources)));
  const audiences = rule.channels.map((name) => reachable.get(name)).filter((each) => each !== undefined);
  return {
    rule,
    takesType,
    tests: [({ type }) => takesType(type), ({ source }) => takesSource(source), ...tests],
    repositoryAt: to.followersOf === undefined ? undefined : compilePath(to.followersOf),
    audiences: audiences.map((each) => audienceOf(rule, each)),
  };
}

function audienceOf({ to }: Rule, { channel, ids, byRole, byRepository }: Reachable): Audience {
  const named = to.users?.filter((id) => ids.has(id)) ?? [];
  const inRole = to.roles?.flatMap((role) => byRole.get(role) ?? []) ?? [];
  return { channel, always: [...new Set([...named, ...inRole])], followers: byRepository };
}

function dataTest(path: Path, takes: Pattern): (event: Event) => boolean {
  return ({ data }) => {
    const text = textAt(data, path);
    return text !== undefined && takes(text);
  };
}

function anyOf(sources: readonly string[]): Pattern {
  const literals = new Set(sources.filter(isLiteral));
  const patterns = sources.filter((source) => !isLiteral(source)).map(compilePattern);
  return (value) => literals.has(value) || patterns.some((matches) => matches(value));
}
