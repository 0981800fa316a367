// SPDX-License-Identifier: Apache-2.0
// The lines that answers follow: edit one, switch it off, or delete it.

import { get, persistently, post, signedIn } from "/files/api.js";
import { announce, button, el, find } from "/files/dom.js";
import { banner, showUser, signedOut } from "/files/header.js";
import { listed, say } from "/files/texts.js";

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
  const field = el("input", { type: "text", value: note.text, maxlength: "400", "aria-label": say("page_note_field") });
  const save = (event) => {
    event.preventDefault();
    return change(say("page_note_saved"), note, "edit", field.value);
  };
  item.replaceChildren(el("form", { class: "words", onsubmit: save }, field, el("div", { class: "row" },
    el("button", { class: "primary small", type: "submit" }, say("page_save")),
    button(say("page_cancel"), { class: "quiet small", onclick: () => item.replaceWith(line(note)) }))));
  field.focus();
}

function rests(note) {
  const state = note.learnt ? say("page_note_learnt") : "";
  const from = note.edited ? say("page_note_yours") : say("page_note_from", { count: note.ratings });
  return listed(note.used ? state : say("page_note_off"), from, note.shared ? say("page_note_shared") : "");
}

function line(note) {
  const item = el("li", { class: "card" });
  const turn = note.used && !note.learnt ? ["page_switch_off", "off", "page_is_off"] : ["page_switch_on", "on", "page_is_on"];
  item.append(el("p", { class: "words" }, note.text), el("p", { class: "meta" }, rests(note)), el("div", { class: "row" },
    note.shared ? null : button(say("page_edit"), { class: "chip small", onclick: () => edit(note, item) }),
    button(say(turn[0]), { class: "chip small", onclick: () => change(say(turn[2]), note, turn[1]) }),
    button(say("page_delete"), { class: "quiet small", onclick: () => change(say("page_note_deleted"), note, "delete") })));
  return item;
}

function show(notes) {
  find("#notes").replaceChildren(notes.length
    ? el("ul", { class: "lines" }, ...notes.map(line))
    : el("div", { class: "nothing" }, el("h2", {}, say("page_no_notes")),
      el("p", {}, say("page_no_notes_how"))));
}

async function run() {
  const waits = (problem) => banner(problem.message);
  showUser(await signedIn(waits));
  const { notes } = await persistently(() => get("/api/notes"), waits);
  banner("");
  show(notes);
}

run().catch((problem) => (problem.status === 401 ? signedOut() : banner(problem.message)));
