// SPDX-License-Identifier: Apache-2.0
// The lines that answers follow: edit one, switch it off, or delete it.

import { get, persistently, post, signedIn } from "/files/api.js";
import { announce, button, el, find } from "/files/dom.js";
import { banner, showUser, signedOut } from "/files/header.js";

async function change(told, note, what, text = "") {
  try {
    const { notes } = await post("/api/notes", { do: what, number: String(note.number), text });
    banner("");
    show(notes);
    announce(told);
  } catch (problem) {
    if (problem.status === 401) signedOut();
    else banner(problem.message);
  }
}

function edit(note, item) {
  const field = el("input", { type: "text", value: note.text, maxlength: "400", "aria-label": "The line in your words" });
  const save = (event) => {
    event.preventDefault();
    return change("Saved.", note, "edit", field.value);
  };
  item.replaceChildren(el("form", { class: "words", onsubmit: save }, field, el("div", { class: "row" },
    el("button", { class: "primary small", type: "submit" }, "Save"),
    button("Cancel", { class: "quiet small", onclick: () => item.replaceWith(line(note)) }))));
  field.focus();
}

function rests(note) {
  const count = `${note.ratings} rating${note.ratings === 1 ? "" : "s"}`;
  return [note.used ? note.learnt ? "learnt" : "" : "off", note.edited ? "in your words" : `from ${count}`, note.shared ? "for others, too" : ""]
    .filter(Boolean).join(", ");
}

function line(note) {
  const item = el("li", { class: "card" });
  const turn = note.used && !note.learnt ? ["Switch off", "off", "Off."] : ["Switch on", "on", "On."];
  item.append(el("p", { class: "words" }, note.text), el("p", { class: "meta" }, rests(note)), el("div", { class: "row" },
    note.shared ? null : button("Edit", { class: "chip small", onclick: () => edit(note, item) }),
    button(turn[0], { class: "chip small", onclick: () => change(turn[2], note, turn[1]) }),
    button("Delete", { class: "quiet small", onclick: () => change("Deleted.", note, "delete") })));
  return item;
}

function show(notes) {
  find("#notes").replaceChildren(notes.length
    ? el("ul", { class: "lines" }, ...notes.map(line))
    : el("div", { class: "nothing" }, el("h2", {}, "No notes"),
      el("p", {}, "Call an answer bad, and say why with a button under it.")));
}

async function run() {
  const waits = (problem) => banner(problem.message);
  showUser(await signedIn(waits));
  const { notes } = await persistently(() => get("/api/notes"), waits);
  banner("");
  show(notes);
}

run().catch((problem) => (problem.status === 401 ? signedOut() : banner(problem.message)));
