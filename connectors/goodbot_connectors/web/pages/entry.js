// SPDX-License-Identifier: Apache-2.0
// One message on the page: a question, an answer with what can be said of it, or a word of goodbot's.

import { copyButton } from "/files/copy.js";
import { announce, button, el, latecomer, when } from "/files/dom.js";
import { colour } from "/files/highlight.js";
import { markdown } from "/files/markdown.js";
import { RatingBar } from "/files/rating.js";
import { say } from "/files/texts.js";

const NAMES = { you: say("page_you"), bot: "goodbot", news: "goodbot" };
const AGAIN = "again:better"; // says nothing of what was wrong
const GIVEN_UP_MS = 11 * 60 * 1000; // goodbot lets a question go after ten minutes

export class EntryView {
  #act;
  #label;
  #drawn = false;
  bar = null;
  copy = null; // its button

  // `act(event, entry)` sends what was pressed at this answer; `label` precedes a demo model's: it is a badge here.
  constructor(entry, act, label) {
    this.#act = act;
    this.#label = label;
    this.badge = el("span", { class: "badge", hidden: true }, say("page_demo_model"));
    this.words = el("div", { class: "words" });
    this.note = el("p", { class: "note" });
    this.foot = el("div", { class: "foot" });
    this.element = el("article", { class: `entry ${entry.by}`, tabindex: "-1", "data-id": entry.id });
    this.entry = { ...entry, text: "" };
    this.name = el("h2", { class: "who" }, NAMES[entry.by] || "goodbot", this.badge,
      el("time", { datetime: new Date(entry.at).toISOString() }, when(entry.at)));
    this.element.append(this.name, this.words, this.note, this.foot);
    this.update(entry);
  }

  get canBeRated() {
    return Boolean(this.entry.turn) && this.entry.state === "";
  }

  update(entry) {
    const before = this.entry;
    this.badge.hidden = true;
    this.entry = this.#unlabelled(entry);
    const writing = entry.state === "writing";
    this.element.classList.toggle("writing", writing);
    this.element.classList.toggle("failed", entry.state === "failed");
    this.element.setAttribute("aria-busy", String(writing));
    if (this.entry.text !== before.text || !this.#drawn) this.#draw();
    else if (!writing) colour(this.words);
    this.note.textContent = entry.note;
    this.note.hidden = !entry.note;
    if (before.state === "writing" && !writing) announce(`goodbot: ${this.entry.text} ${entry.note}`);
    this.#rating(before);
  }

  grow(text) {
    this.entry = this.#unlabelled({ ...this.entry, text: this.entry.text + text });
    if (this.#drawn) requestAnimationFrame(() => this.#drawn || this.#draw()); // the end may have come before
    this.#drawn = false;
  }

  #unlabelled(entry) {
    if (entry.by !== "bot" || !entry.text.startsWith(this.#label)) return entry;
    this.badge.hidden = false;
    return { ...entry, text: entry.text.slice(this.#label.length) };
  }

  #draw() {
    if (this.entry.by === "you") this.words.textContent = this.entry.text;
    else this.words.replaceChildren(markdown(this.entry.text));
    if (this.entry.state !== "writing") colour(this.words); // not anew with each word that comes
    this.#drawn = true;
  }

  // An answer has its own bar; another answer in its place starts with a fresh one.
  #rating(before) {
    if (this.bar && this.canBeRated && before.turn === this.entry.turn) return;
    const tools = this.#tools();
    this.bar = null;
    if (this.canBeRated && this.entry.buttons.length) {
      this.bar = new RatingBar({ buttons: this.entry.buttons, act: (event) => this.#act(event, this), tools });
      this.foot.replaceChildren(this.bar.element);
    } else {
      this.foot.replaceChildren();
      if (tools.length) this.foot.append(el("div", { class: "rating-row" }, ...tools));
      if (this.entry.by === "news") this.#offer();
    }
  }

  // What can be done with an answer beside rating it.
  #tools() {
    this.copy = null;
    if (this.entry.by === "you") {
      const edit = () => this.#act({ edit: this.entry.text }, this);
      return [button(say("page_edit"), { class: "quiet small edit", title: say("page_edit_how"), onclick: edit })];
    }
    if (this.entry.by !== "bot" || this.entry.state === "writing" || !this.entry.text) return [];
    this.copy = copyButton(() => this.entry.text, { title: `${say("page_copy")} (y)` });
    if (!this.canBeRated) return [this.copy];
    const again = () => this.element.classList.contains("again") || this.#act({ press: AGAIN }, this);
    return [this.copy, button(say("page_try_again"), { class: "quiet rates", onclick: again })];
  }

  // What goodbot asks unasked: what comes of a press follows at the end.
  #offer() {
    if (!this.entry.buttons.length) return;
    this.foot.append(choices(this.entry.buttons, (action) => this.#act({ press: action }, this)));
  }

  // A retry was asked for: the old answer stands until the new one begins.
  again(busy) {
    this.element.classList.toggle("again", busy);
    this.element.setAttribute("aria-busy", String(busy));
    if (busy) announce(say("page_on_its_way"));
  }
}

// What is shown for a question whose answer has not begun.
export function thinking(entry) {
  if (Date.now() - entry.at > GIVEN_UP_MS) {
    return el("p", { class: "note late" }, say("page_no_answer"));
  }
  return el("p", { class: "thinking" },
    el("span", { class: "dots", "aria-hidden": "true" }, el("i"), el("i"), el("i")), say("page_thinking"));
}

// A message that goodbot does not have yet.
export function unsent(event, problem) {
  const state = problem ? say("page_not_sent", { why: problem.message }) : say("page_sending");
  return el("article", { class: "entry you unsent" },
    el("h2", { class: "who" }, NAMES.you),
    el("div", { class: "words" }, event.say),
    el("p", { class: "note" }, state));
}

// What a typed command came to: for this person alone, gone after a reload.
export function commandNote(frame, press, dismiss) {
  return el("article", { class: "entry command", tabindex: "-1" },
    el("h2", { class: "who" }, frame.command ? `/rl ${frame.command}` : "goodbot",
      button(say("page_dismiss"), { class: "quiet small dismiss", onclick: dismiss })),
    el("div", { class: "words" }, markdown(frame.receipt)),
    frame.offer.length ? choices(frame.offer, press) : null);
}

// Buttons of which one is pressed, and then none any more.
function choices(offered, press) {
  const row = el("div", { class: "offer-row", role: "group", "aria-label": say("page_choices") });
  for (const one of offered) {
    row.append(latecomer(one.label, { class: "chip small", onclick: () => { row.remove(); press(one.action); } }));
  }
  return row;
}
