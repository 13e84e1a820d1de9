/** By file: the titles of the tests that passed when it ran last. */
export type Titles = Readonly<Record<string, readonly string[]>>;

export const TITLES_FILE = "node_modules/.cache/test-titles.json";
