// SPDX-License-Identifier: Apache-2.0
// The list of conversations: a column on a wide screen, a drawer on a phone. It can be searched.

import { get } from "/files/api.js";
import { Arrange } from "/files/arrange.js";
import { announce, button, el, find, when } from "/files/dom.js";
import { say } from "/files/texts.js";

const TYPING_MS = 250;

export class Sidebar {
  #list = find("#conversations");
  #menu = find("#menu");
  #search = find("#search");
  #more = find("#more");
  #open;
  #arrange;
  #current = "";
  #unread = new Set();
  #shown = [];
  #found = null; // what a search has found; null while none is made
  #timer = 0;

  // `open(id)` shows a conversation, a new one where the id is empty; `arrange(id, what)` renames or deletes.
  constructor(open, arrange) {
    this.#open = open;
    this.#arrange = new Arrange(arrange);
    this.#menu.addEventListener("click", () => this.#drawer(!document.body.classList.contains("drawer")));
    find("#new").addEventListener("click", () => this.begin());
    find("main").addEventListener("click", () => this.#drawer(false));
    this.#search.addEventListener("input", () => {
      clearTimeout(this.#timer);
      this.#timer = setTimeout(() => this.#look(), TYPING_MS);
    });
    this.#more.addEventListener("click", () => this.#look(this.#found.after));
    find("#side").addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      const searches = event.target === this.#search && this.#search.value;
      if (!searches && !document.body.classList.contains("drawer")) return;
      event.stopPropagation(); // it closes this, and stops no answer
      if (searches) return; // the browser empties the field, and says so
      this.#drawer(false);
      this.#menu.focus();
    });
  }

  begin() {
    history.replaceState(null, "", location.pathname);
    this.#open("");
    this.#drawer(false);
  }

  show(conversations) {
    this.#shown = conversations;
    if (this.#found) this.#look(); // its name may be another one, or it is gone
    this.#draw();
  }

  current(id) {
    this.#current = id;
    this.#unread.delete(id);
    this.#draw();
  }

  unread(id) {
    this.#unread.add(id);
    this.#draw();
  }

  // Search for what is typed, from the newest conversation or behind `after`.
  async #look(after = "") {
    const text = this.#search.value.trim();
    if (!text) {
      this.#found = null;
      return this.#draw();
    }
    const before = after ? this.#found.rows : [];
    let answer;
    try {
      answer = await get("/api/conversations", { text, after });
    } catch (problem) {
      return announce(problem.message);
    }
    if (text !== this.#search.value.trim()) return undefined; // more was typed since
    this.#found = { rows: [...before, ...answer.found], after: answer.after };
    this.#draw();
    const count = this.#found.rows.length;
    return announce(count ? say("page_found", { count }) : say("page_none_found"));
  }

  #draw() {
    const focused = document.activeElement?.dataset?.of;
    const rows = this.#found?.rows ?? this.#shown;
    this.#menu.classList.toggle("unread", this.#shown.some((one) => this.#unread.has(one.id)));
    this.#more.hidden = !this.#found?.after;
    this.#list.replaceChildren(...rows.map((one) => this.#row(one)));
    if (!rows.length) this.#list.append(el("li", { class: "none" }, say(this.#found ? "page_nothing_found" : "page_nothing_yet")));
    if (focused) (find(`[data-of="${focused}"]`, this.#list) ?? find("#new")).focus();
  }

  #row(one) {
    const title = one.id === "news" ? say("page_news") : one.title || say("page_conversation");
    const link = el("a", { href: `#${one.id}`, "aria-current": one.id === this.#current ? "true" : null },
      el("span", { class: "title" }, title), el("time", {}, when(one.at)));
    if (one.excerpt) link.append(el("span", { class: "excerpt" }, one.excerpt));
    if (this.#unread.has(one.id)) link.append(el("span", { class: "dot" }, el("span", { class: "visually-hidden" }, say("page_new"))));
    link.addEventListener("click", () => this.#drawer(false));
    const menu = button("", {
      class: "quiet icon arrange", "aria-label": say("page_arrange_which", { title }), title: say("page_arrange"),
      "aria-haspopup": "dialog", "data-of": one.id, onclick: () => this.#arrange.open({ id: one.id, title }),
    }, el("span", { "aria-hidden": "true" }, "⋯"));
    return el("li", {}, link, menu);
  }

  #drawer(open) {
    document.body.classList.toggle("drawer", open);
    this.#menu.setAttribute("aria-expanded", String(open));
    if (open) find("#new").focus();
  }
}
