// SPDX-License-Identifier: Apache-2.0
// The keyboard: one letter each, wherever nothing is being typed; `?` shows them all.

import { el, find, isTyping } from "/files/dom.js";
import { say } from "/files/texts.js";

// `table`: rows of { key, does, run }; keys with the same words stand in one row of the help.
export function listen(table) {
  const byKey = new Map(table.flatMap((row) => row.keys.map((key) => [key, row])));
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (event.repeat || document.body.classList.contains("out")) return; // one press is one rating
    if (event.key === "Escape") return escape(event, byKey.get("Escape"));
    if (off() || isTyping(event.target) || find("dialog[open]")) return;
    const row = byKey.get(event.key);
    if (!row?.run) return;
    event.preventDefault();
    row.run(event.key);
  });
  help(table);
}

// Who speaks to their browser, or has a screen reader with keys of its own, may want none of these.
const OFF = "keys";

function off() {
  try {
    return localStorage.getItem(OFF) === "off";
  } catch {
    return false;
  }
}

function escape(event, row) {
  if (find("dialog[open]")) return; // the browser closes it
  if (isTyping(event.target)) event.target.blur();
  else row?.run("Escape");
}

function help(table) {
  const dialog = find("#help");
  const rows = table.map((row) => el("div", { class: "key-row" },
    el("dt", {}, ...row.keys.map((key) => el("kbd", {}, key === "Escape" ? "Esc" : key))),
    el("dd", {}, row.does)));
  find(".keys", dialog).replaceChildren(...rows);
  const box = el("input", { type: "checkbox", onchange: () => localStorage.setItem(OFF, box.checked ? "" : "off") });
  box.checked = !off();
  find(".keys", dialog).after(el("label", { class: "switch" }, box, say("page_use_keys")));
  find(".close", dialog).addEventListener("click", () => dialog.close());
  for (const opener of document.querySelectorAll("[data-help]")) {
    opener.addEventListener("click", () => dialog.showModal());
  }
}

export function showHelp() {
  find("#help").showModal();
}

// The rows that chat and inbox share: `bar()` gives the RatingBar that is meant, if there is one.
export function ratingKeys(bar) {
  return [
    { keys: ["g"], does: say("page_good"), run: () => bar()?.thumb(1) },
    { keys: ["b"], does: say("page_bad"), run: () => bar()?.thumb(-1) },
    { keys: ["1", "2", "3", "4", "5"], does: say("page_key_stars"), run: (key) => bar()?.star(Number(key)) },
    { keys: ["c"], does: say("page_say_why"), run: () => bar()?.write("comment") },
    { keys: ["e"], does: say("page_key_better"), run: () => bar()?.write("better") },
  ];
}
