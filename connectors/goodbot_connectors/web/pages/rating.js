// SPDX-License-Identifier: Apache-2.0
// What stands under an answer: good, bad, stars, why, a better answer, undo, and what follows a rating.
// It shows what `said` says, and tells `act(event)` what was pressed.

import { button, el, emoji, find, latecomer } from "/files/dom.js";
import { say } from "/files/texts.js";

const THUMBS = [
  { action: "good", sign: "👍", label: say("page_good"), value: 1 },
  { action: "bad", sign: "👎", label: say("page_bad"), value: -1 },
];
const MOST = 5;

export class RatingBar {
  #act;
  #buttons = [];
  #stars = [];
  #said = {};
  #drafts = {}; // by kind, words that were typed and not kept
  #starsOpen;

  // `buttons` are those that goodbot draws under the answer: thumbs or stars. `tools` stand behind ours.
  constructor({ buttons, act, tools = [] }) {
    this.#act = act;
    this.#starsOpen = buttons.some((one) => one.action.startsWith("star:"));
    this.element = el("div", { class: "rating" });
    this.#build(tools);
  }

  #build(tools) {
    const row = el("div", { class: "rating-row", role: "group", "aria-label": say("page_rate_this") });
    for (const thumb of THUMBS) {
      const node = button(thumb.label, {
        class: `chip ${thumb.action}`, "aria-pressed": "false", title: `${thumb.label} (${thumb.action[0]})`,
        onclick: () => this.thumb(thumb.value),
      }, emoji(thumb.sign));
      this.#buttons.push({ ...thumb, node });
      row.append(node);
    }
    this.stars = el("span", { class: "stars", role: "group", "aria-label": say("page_stars") });
    for (let count = 1; count <= MOST; count += 1) {
      const label = say("page_star", { stars: count });
      const node = button("", {
        class: "star", "aria-pressed": "false", "aria-label": label, title: `${label} (${count})`,
        onclick: () => this.star(count),
      }, emoji("★"));
      this.#stars.push(node);
      this.stars.append(node);
    }
    this.toggle = button(say("page_stars"), {
      class: "quiet", "aria-expanded": "false", onclick: () => this.#openStars(!this.#starsOpen),
    }, emoji("☆"));
    this.why = button(say("page_say_why"), { class: "quiet", title: `${say("page_say_why")} (c)`, "aria-expanded": "false", onclick: () => this.write("comment") });
    this.better = button(say("page_better_answer"), { class: "quiet", title: `${say("page_better_answer")} (e)`, "aria-expanded": "false", onclick: () => this.write("better") });
    this.back = button(say("page_undo"), { class: "quiet", title: `${say("page_undo")} (u)`, onclick: () => this.undo() });
    const more = button(say("page_more"), { class: "quiet more", "aria-expanded": "false", onclick: () => {
      more.setAttribute("aria-expanded", String(this.element.classList.toggle("unfolded")));
    } });
    row.append(more, this.toggle, this.stars, this.why, this.better, ...tools, this.back);
    this.offer = el("div", { class: "offer" });
    this.receipt = el("p", { class: "receipt", role: "status" });
    this.form = el("div", { class: "form-place" });
    this.element.append(row, this.form, this.receipt, this.offer);
    this.#openStars(this.#starsOpen);
    this.show({});
  }

  #openStars(open) {
    this.#starsOpen = open;
    this.stars.hidden = !open;
    this.toggle.setAttribute("aria-expanded", String(open));
  }

  // What this person has said of the answer: `thumb`, `stars`, `comment`, `better`.
  get said() {
    return this.#said;
  }

  // Whether words have been typed that are not kept yet.
  get writing() {
    return Boolean(find("textarea", this.form)?.value.trim());
  }

  show(said) {
    this.#said = said;
    for (const thumb of this.#buttons) {
      thumb.node.setAttribute("aria-pressed", String(said.thumb === thumb.value));
    }
    this.#stars.forEach((node, index) => {
      node.setAttribute("aria-pressed", String(said.stars === index + 1));
      node.classList.toggle("lit", index < (said.stars || 0));
    });
    if (said.stars) this.#openStars(true);
    this.element.classList.toggle("said", Object.keys(said).length > 0);
    this.why.classList.toggle("given", Boolean(said.comment));
    this.better.classList.toggle("given", Boolean(said.better));
    this.#name("comment");
    this.#name("better");
    this.back.hidden = !(said.thumb || said.stars || said.comment || said.better);
  }

  // What the button of these words is called: that they were typed, and not kept, is seen on it.
  #name(kind) {
    const [node, open, kept] = kind === "better"
      ? [this.better, "page_better_answer", "page_better_kept"]
      : [this.why, "page_say_why", "page_why_kept"];
    const draft = kind in this.#drafts;
    node.textContent = draft ? say("page_draft", { what: say(open) }) : say(open);
    node.setAttribute("aria-label", draft ? node.textContent : say(this.#said[kind] ? kept : open));
  }

  thumb(value) {
    const again = this.#said.thumb === value;
    if (again) return this.#do({ undo: "button" }, { thumb: undefined });
    return this.#do({ press: value > 0 ? "good" : "bad" }, { thumb: value });
  }

  star(count) {
    this.#openStars(true);
    if (this.#said.stars === count) return this.#do({ undo: "stars" }, { stars: undefined });
    return this.#do({ press: `star:${count}` }, { stars: count });
  }

  undo() {
    return this.#do({ undo: "" }, { thumb: undefined, stars: undefined, comment: undefined, better: undefined });
  }

  press(action) {
    this.tell("", []);
    return this.#act({ press: action });
  }

  // Shown at once; what goodbot makes of it follows, and corrects it.
  async #do(event, change) {
    const before = this.#said;
    this.tell("", []);
    this.show(Object.fromEntries(Object.entries({ ...before, ...change }).filter(([, v]) => v !== undefined)));
    const done = await this.#act(event);
    if (done && done.outcome !== "accepted") this.show(before);
    return done;
  }

  // A word for this person alone, and what they may press next.
  tell(text, offer = [], bad = false) {
    this.receipt.textContent = text;
    this.receipt.classList.toggle("error", bad);
    this.offer.replaceChildren();
    const again = offer.filter((one) => one.action.startsWith("again:"));
    const others = offer.filter((one) => !again.includes(one));
    for (const [name, row] of [["page_another_answer", again], ["page_choices", others]]) {
      if (!row.length) continue;
      const group = el("div", { class: "offer-row", role: "group", "aria-label": say(name) });
      if (row === again) group.append(el("span", { class: "offer-label" }, say("page_again_as")));
      for (const one of row) {
        group.append(latecomer(one.label, { class: "chip small", onclick: () => this.press(one.action) }));
      }
      this.offer.append(group);
    }
  }

  // A place to type a reason or a better answer.
  write(kind) {
    const trigger = kind === "better" ? this.better : this.why;
    const asked = say(kind === "better" ? "page_ask_better" : "page_ask_why");
    const area = el("textarea", { rows: kind === "better" ? "5" : "3", maxlength: "10000", "aria-label": asked, placeholder: asked });
    area.value = this.#drafts[kind] ?? this.#said[kind] ?? "";
    const close = () => {
      // What was typed is there again when this is opened again.
      if (area.value === (this.#said[kind] ?? "")) delete this.#drafts[kind];
      else this.#drafts[kind] = area.value;
      this.#name(kind);
      this.form.replaceChildren();
      trigger.setAttribute("aria-expanded", "false");
      trigger.focus();
    };
    const send = async (event) => {
      event?.preventDefault();
      const text = area.value.trim();
      if (!text) return area.focus();
      close();
      delete this.#drafts[kind];
      this.#name(kind);
      return this.#do({ [kind]: text }, { [kind]: text });
    };
    const form = el("form", { class: "words", onsubmit: send },
      el("label", {}, el("span", { class: "label" }, asked), area),
      el("div", { class: "row" },
        el("button", { type: "submit", class: "primary small" }, say("page_keep")),
        button(say("page_cancel"), { class: "quiet small", onclick: close }),
        el("span", { class: "label keyed" }, say("page_keep_keys"))));
    form.addEventListener("keydown", (event) => {
      if (event.key === "Escape") { event.stopPropagation(); close(); }
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) send(event);
    });
    trigger.setAttribute("aria-expanded", "true");
    this.form.replaceChildren(form);
    area.focus();
    form.scrollIntoView({ block: "nearest" }); // with its buttons
  }
}
