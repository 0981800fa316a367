// SPDX-License-Identifier: Apache-2.0
// What can be typed behind a slash, and the pages, shown while it is typed. It fills the field in or goes to the
// page: nothing is sent.

import { announce, el, find } from "/files/dom.js";
import { say } from "/files/texts.js";

const SHOWN = 8;

export class Palette {
  #area;
  #list = find("#commands");
  #commands = [];
  #found = [];
  #at = -1;

  constructor(area) {
    this.#area = area;
    this.#area.addEventListener("input", () => this.#typed());
    this.#area.addEventListener("blur", () => this.close());
    // Not "click": by then the field has lost the focus, and the list is gone.
    this.#list.addEventListener("pointerdown", (event) => {
      const row = event.target.closest("li");
      event.preventDefault();
      if (row) this.#take(this.#found[[...this.#list.children].indexOf(row)]);
    });
  }

  // `commands`: rows of { name, usage, summary }, those that this person may type.
  offer(commands) {
    this.#commands = commands;
  }

  // Whether a key was meant for the list.
  takes(event) {
    if (this.#list.hidden || event.isComposing) return false;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) this.#mark((this.#at + step + this.#found.length) % this.#found.length);
    else if (event.key === "Escape") this.close();
    else if (event.key === "Tab" && !event.shiftKey && (this.#at >= 0 || this.#found.length === 1)) {
      this.#take(this.#found[Math.max(this.#at, 0)]); // else it leaves the field, as everywhere
    } else if (event.key === "Enter" && !event.shiftKey && this.#at >= 0) this.#take(this.#found[this.#at]);
    else return false;
    event.preventDefault();
    event.stopPropagation(); // the page's own keys, Escape among them, mean something else
    return true;
  }

  close() {
    this.#found = [];
    this.#show();
  }

  #typed() {
    const pages = [...document.querySelectorAll(".top nav a:not([aria-current])")]
      .map((link) => ({ name: link.pathname.slice(1), usage: "", summary: say("page_to_page", { page: link.textContent }), href: link.href }));
    const typed = /^\/(?:rl\s+)?(\S*)$/i.exec(this.#area.value)?.[1]?.toLowerCase();
    const begins = (one) => one.name.startsWith(typed);
    this.#found = typed === undefined ? [] : [
      ...this.#commands.filter(begins),
      ...pages.filter((one) => typed && begins(one)),
      ...this.#commands.filter((one) => !begins(one) && typed && one.name.includes(typed)),
    ].slice(0, SHOWN);
    if (this.#found.some((one) => one.name === typed && !one.href)) this.#found = []; // it is typed: Enter sends it
    this.#show();
    this.#mark(this.#found.findIndex((one) => one.name === typed));
  }

  #show() {
    this.#list.hidden = !this.#found.length;
    this.#list.replaceChildren(...this.#found.map((one, at) => el("li", { role: "option", id: `command-${at}` },
      el("code", {}, `/${one.href ? "" : "rl "}${one.name}${one.usage && " "}${one.usage}`), el("span", {}, one.summary))));
    this.#mark(-1);
    if (this.#found.length) announce(say("page_commands_found", { count: this.#found.length }));
  }

  #mark(at) {
    this.#at = at;
    for (const [n, row] of [...this.#list.children].entries()) row.setAttribute("aria-selected", String(n === at));
    if (at < 0) return this.#area.removeAttribute("aria-activedescendant");
    this.#list.children[at].scrollIntoView({ block: "nearest" });
    return this.#area.setAttribute("aria-activedescendant", `command-${at}`);
  }

  #take(command) {
    if (command.href) return location.assign(command.href);
    this.#area.value = `/rl ${command.name}${command.usage && " "}`;
    this.#area.dispatchEvent(new Event("input", { bubbles: true }));
    return this.close();
  }
}
