/** Configuration files: YAML, or JSON, which is YAML too. */
import { readFile } from "node:fs/promises";
import { type Document, isNode, LineCounter, parseDocument } from "yaml";
import type { ChannelForm } from "../channels/channel.ts";
import type { Config } from "./config.ts";
import { ConfigError, type Fault } from "./faults.ts";
import { checkConfig, parseConfig } from "./parse.ts";

/** Throws `ConfigError` with every fault and its line, or what reading the file threw. */
export async function loadConfig(file: string, channels: readonly ChannelForm[]): Promise<Config> {
  const source = read(await readFile(file, "utf8"));
  if (source.faults.length > 0) throw new ConfigError(source.faults, file);
  try {
    return parseConfig(source.value, channels);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    throw new ConfigError(
      error.faults.map((fault) => source.locate(fault)),
      file,
    );
  }
}

/** All faults of a file, for people; empty for a good one. Throws what reading the file threw. */
export async function checkConfigFile(file: string, channels: readonly ChannelForm[]): Promise<readonly Fault[]> {
  const source = read(await readFile(file, "utf8"));
  return source.faults.length > 0
    ? source.faults
    : checkConfig(source.value, channels).map((fault) => source.locate(fault));
}

interface Source {
  readonly value: unknown;
  /** Of the language, not of what it says. */
  readonly faults: readonly Fault[];
  /** Adds the line. */
  locate(fault: Fault): Fault;
}

function read(text: string): Source {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const faults = [...document.errors, ...document.warnings].map(({ message, pos }) => ({
    path: [],
    message: `is not YAML: ${message}`,
    line: lines.linePos(pos[0]).line,
  }));
  const none = { value: undefined, locate: (fault: Fault): Fault => fault };
  if (faults.length > 0) return { ...none, faults };
  try {
    return { value: document.toJS(), faults, locate: (fault) => locate(fault, document, lines) };
  } catch (error) {
    return { ...none, faults: [{ path: [], message: `is not YAML: ${String(error)}` }] }; // aliases without measure
  }
}

/** What is missing has no line: that of the innermost part which is there is told instead. */
function locate(fault: Fault, document: Document, lines: LineCounter): Fault {
  for (let length = fault.path.length; length >= 0; length -= 1) {
    const node = document.getIn(fault.path.slice(0, length), true);
    if (isNode(node) && node.range) return { ...fault, line: lines.linePos(node.range[0]).line };
  }
  return fault;
}
