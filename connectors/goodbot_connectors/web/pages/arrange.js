// SPDX-License-Identifier: Apache-2.0
// What can be done with a conversation of the list: another name, a file of it, or away with it. Deleting asks once.

import { find } from "/files/dom.js";
import { saveConversation } from "/files/save.js";
import { say } from "/files/texts.js";

export class Arrange {
  #dialog = find("#arrange");
  #one = null;
  #said;

  // `said(id, what)` is told what was chosen: `{ rename: TITLE }` or `{ delete: true }`.
  constructor(said) {
    this.#said = said;
    const on = (selector, what, run) => find(selector, this.#dialog).addEventListener(what, run);
    on("form", "submit", (event) => {
      event.preventDefault();
      this.#do({ rename: find("input", this.#dialog).value.trim() });
    });
    on(".save-file", "click", () => { this.#dialog.close(); saveConversation(this.#one); });
    on(".delete", "click", () => this.#ask());
    on(".sure", "click", () => this.#do({ delete: true }));
    on(".close", "click", () => this.#dialog.close());
    this.#dialog.addEventListener("close", () => {
      // The list may have been drawn anew meanwhile, without the button that this came from.
      const at = document.activeElement;
      if (at === document.body || this.#dialog.contains(at)) find(`[data-of="${this.#one.id}"]`)?.focus();
    });
  }

  // `one`: { id, title }, as in the list.
  open(one) {
    this.#one = one;
    this.#show(false);
    find("input", this.#dialog).value = one.title;
    this.#dialog.showModal();
  }

  #ask() {
    this.#show(true);
    find(".close", this.#dialog).focus(); // not on what cannot be taken back
  }

  #show(asks) {
    const part = (selector) => find(selector, this.#dialog);
    part("h2").textContent = asks ? say("page_delete_which", { title: this.#one.title }) : this.#one.title;
    part("form").hidden = asks || this.#one.id === "news"; // that has its name
    part(".gone").hidden = !asks;
    part(".save-file").hidden = asks;
    part(".delete").hidden = asks;
    part(".sure").hidden = !asks;
  }

  #do(what) {
    this.#dialog.close();
    this.#said(this.#one.id, what);
  }
}
