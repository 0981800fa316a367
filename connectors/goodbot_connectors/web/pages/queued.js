// SPDX-License-Identifier: Apache-2.0
// In the inbox: the queues that are shared with whoever rates, how far each is, and which one is shown.

import { get } from "/files/api.js";
import { button, el, find } from "/files/dom.js";
import { fill } from "/files/fill.js";

const LOOK_MS = 15_000;

export class Queued {
  #place = find("#queues");
  #field = find("#filters").elements.queue;
  #waiting = [];
  #words = {};
  #drawn = "";
  #asked = 0;

  constructor() {
    setInterval(() => document.hidden || this.look(), LOOK_MS);
  }

  async look() {
    const asked = ++this.#asked;
    const found = await get("/api/queues").catch(() => null); // it is asked again
    if (!found || asked !== this.#asked) return;
    this.#waiting = found.waiting;
    this.#words = found.words;
    this.#draw();
  }

  // What stands there when the queue that is shown has no answer left; null: it is not that.
  end() {
    const shown = this.#waiting.find(({ id }) => String(id) === this.#field.value);
    if (!shown || shown.done < shown.answers) return null;
    return el("div", { class: "nothing" }, el("img", { src: "/files/icon.svg", alt: "", width: "64", height: "64" }),
      el("h2", {}, this.#words.finished), el("p", {}, this.#words.more));
  }

  #draw() {
    const drawn = JSON.stringify([this.#waiting, this.#field.value]);
    if (drawn === this.#drawn) return;
    this.#drawn = drawn;
    const at = [...this.#place.querySelectorAll("button")].indexOf(document.activeElement);
    this.#place.hidden = !this.#waiting.length && !this.#field.value;
    this.#place.setAttribute("aria-label", this.#words.inbox);
    this.#place.replaceChildren(this.#choice("", this.#words.every), ...this.#waiting.map(({ id, name, done, answers }) => (
      this.#choice(String(id), name, el("span", { class: "far" }, fill(this.#words.done, { done, answers })),
        el("progress", { max: answers, value: done, "aria-hidden": "true" })))));
    if (at >= 0) (this.#place.querySelectorAll("button")[at] || this.#place.lastElementChild).focus();
  }

  #choice(id, name, ...far) {
    const choose = () => {
      this.#field.value = id;
      this.#field.dispatchEvent(new Event("input", { bubbles: true }));
      this.#draw();
    };
    const node = button("", { class: "chip queue", "aria-pressed": String(this.#field.value === id), onclick: choose }, el("span", { class: "name" }, name));
    node.append(...far);
    return node;
  }
}
