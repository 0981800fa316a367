// SPDX-License-Identifier: Apache-2.0
// The list of conversations: a column on a wide screen, a drawer on a phone.

import { el, find, when } from "/files/dom.js";

export class Sidebar {
  #list = find("#conversations");
  #menu = find("#menu");
  #open;
  #current = "";
  #unread = new Set();
  #shown = [];

  // `open(id)` shows a conversation, a new one where the id is empty.
  constructor(open) {
    this.#open = open;
    this.#menu.addEventListener("click", () => this.#drawer(!document.body.classList.contains("drawer")));
    find("#new").addEventListener("click", () => this.begin());
    find("main").addEventListener("click", () => this.#drawer(false));
    find("#side").addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || !document.body.classList.contains("drawer")) return;
      event.stopPropagation(); // it closes this, and stops no answer
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

  #draw() {
    this.#menu.classList.toggle("unread", this.#unread.size > 0);
    this.#list.replaceChildren(...this.#shown.map((one) => {
      const title = one.id === "news" ? "News from goodbot" : one.title || "Conversation";
      const link = el("a", { href: `#${one.id}`, "aria-current": one.id === this.#current ? "true" : null },
        el("span", { class: "title" }, title), el("time", {}, when(one.at)));
      if (this.#unread.has(one.id)) link.append(el("span", { class: "dot" }, el("span", { class: "visually-hidden" }, "new")));
      link.addEventListener("click", () => this.#drawer(false));
      return el("li", {}, link);
    }));
    if (!this.#shown.length) this.#list.append(el("li", { class: "none" }, "Nothing yet."));
  }

  #drawer(open) {
    document.body.classList.toggle("drawer", open);
    this.#menu.setAttribute("aria-expanded", String(open));
    if (open) find("#new").focus();
  }
}
