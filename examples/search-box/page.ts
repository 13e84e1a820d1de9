/** What runs in the browser: the box of `index.html`, wired to a `SearchBox`. */
import { findAt, SearchBox } from "./search-box.ts";

const input = part("#question", HTMLInputElement);
const status = part("#status", HTMLElement);
const results = part("#results", HTMLElement);

const box = new SearchBox(findAt("/search"), {
  empty() {
    status.textContent = "";
    results.replaceChildren();
  },
  asking: (question) => void (status.textContent = `looking for “${question}”…`),
  found(question, found) {
    status.textContent = `${found.length} for “${question}”`;
    results.replaceChildren(...found.map((text) => Object.assign(document.createElement("li"), { textContent: text })));
  },
  failed(question, error) {
    status.textContent = `“${question}” could not be looked for: ${String(error)}`;
    results.replaceChildren();
  },
});

input.addEventListener("input", () => box.type(input.value));
input.form?.addEventListener("submit", (event) => {
  event.preventDefault();
  box.submit();
});
addEventListener("pagehide", () => box.close());

function part<T extends Element>(selector: string, kind: new () => T): T {
  const found = document.querySelector(selector);
  if (found instanceof kind) return found;
  throw new TypeError(`index.html has no ${selector}`);
}
