// SPDX-License-Identifier: Apache-2.0
// Copying, also where the browser gives no page its clipboard: without https, or without permission.

import { announce, button, el } from "/files/dom.js";
import { say } from "/files/texts.js";

const SHOWN_MS = 2000;

async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return selected(text);
  }
}

// The old way: what is selected in a field is copied.
function selected(text) {
  const focused = document.activeElement;
  const area = el("textarea", { class: "visually-hidden", "aria-hidden": "true", tabindex: "-1" });
  area.value = text;
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  focused?.focus({ preventScroll: true });
  return done;
}

// `text()` is what is copied; the button says for a moment what came of it.
export function copyButton(text, properties = {}) {
  const node = button(say("page_copy"), { class: "quiet copy", ...properties, onclick: async () => {
    const told = say(await copied(text()) ? "page_copied" : "page_not_copied");
    node.textContent = told;
    announce(told);
    setTimeout(() => { node.textContent = say("page_copy"); }, SHOWN_MS);
  } });
  return node;
}
