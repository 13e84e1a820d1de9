/** From whatever stood in a file to a configuration that the rest of the dispatcher need not doubt. */
import type { ChannelForm } from "../channels/channel.ts";
import type { Config } from "./config.ts";
import { ConfigError, type Fault } from "./faults.ts";
import { relationFaults } from "./relations.ts";
import { parseForm } from "./schema.ts";

/** Pure: reads no file, asks nobody. Throws `ConfigError` with everything that is wrong. */
export function parseConfig(value: unknown, channels: readonly ChannelForm[]): Config {
  const { config, faults } = examine(value, channels);
  if (config === undefined || faults.length > 0) throw new ConfigError(faults);
  return config;
}

/** All faults; empty for a good configuration. How its parts relate is looked at once each has the right form. */
export function checkConfig(value: unknown, channels: readonly ChannelForm[]): readonly Fault[] {
  return examine(value, channels).faults;
}

function examine(value: unknown, channels: readonly ChannelForm[]): { config?: Config; faults: readonly Fault[] } {
  const names = channels.map(({ name }) => name);
  const parsed = parseForm(value, names);
  if ("faults" in parsed) return parsed;
  return { config: parsed.config, faults: relationFaults(parsed.config, channels) };
}
