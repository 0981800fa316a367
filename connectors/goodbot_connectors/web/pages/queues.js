// SPDX-License-Identifier: Apache-2.0
// Beside the rated answers, for owners: queues for others to rate, made of what is ticked, listed or new.

import { get, post } from "/files/api.js";
import { el, find, latecomer } from "/files/dom.js";
import { fill } from "/files/fill.js";

const TICKED = ".tick input:checked";
const LISTED = "#list > li .tick input";

export class Queues {
  #place = find("#queues");
  #words = {};
  #groups = "";
  #sent = false; // what was pressed is on its way: a second press is the same one

  async look() {
    const found = await get("/api/queues");
    this.#words = found.words;
    if (this.#groups !== JSON.stringify(found.groups)) this.#build(found.groups);
    find("ul", this.#place).replaceChildren(...found.made.map((one) => this.#line(one)));
    find(".none", this.#place).hidden = found.made.length > 0;
    this.#place.hidden = false;
  }

  #build(groups) {
    const words = this.#words;
    this.#groups = JSON.stringify(groups);
    const field = (label, node) => el("label", {}, el("span", { class: "label" }, label), node);
    const choice = (name, ...options) => el("select", { name }, ...options.map(([value, said]) => el("option", { value }, said)));
    const ids = field(words.ids, el("input", { name: "ids", maxlength: "4000", placeholder: "slack:U0123", autocomplete: "off", autocapitalize: "none" }));
    ids.hidden = true;
    const to = choice("to", ["all", words.all], ...groups.map((who) => [`group ${who}`, fill(words.group, { who })]), ["people", words.people]);
    to.addEventListener("change", () => { ids.hidden = to.value !== "people"; });
    const form = el("form", { class: "filters" },
      field(words.name, el("input", { name: "name", maxlength: "80", required: true, autocomplete: "off" })),
      field(words.which, choice("which", ["newest", words.newest], ["shown", words.shown], ["ticked", words.ticked])),
      field(words.count, el("input", { name: "count", type: "number", min: "1", max: "200", value: "20", required: true })),
      field(words.with, to), ids,
      el("button", { type: "submit", class: "primary small" }, words.make));
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      const { name } = form.elements;
      if (await this.#make(form.elements)) name.value = ""; // the next one is another
    });
    this.#place.replaceChildren(el("details", {}, el("summary", {}, words.title), el("p", { class: "count" }, words.hint), form,
      el("p", { class: "told-line", role: "status", tabindex: "-1" }),
      el("p", { class: "count none" }, words.none), el("ul", { class: "lines" })));
  }

  #make({ name, which, count, to, ids }) {
    const boxes = which.value === "newest" ? [] : [...document.querySelectorAll(which.value === "ticked" ? TICKED : LISTED)];
    const turns = boxes.map((box) => box.closest("li").dataset.turn).slice(0, which.value === "ticked" ? boxes.length : Number(count.value));
    const people = () => ids.value.split(/\s/).filter(Boolean).map((who) => ["person", who]);
    const shared = to.value === "people" ? people() : [to.value === "all" ? ["all", ""] : ["group", to.value.slice(6)]];
    return this.#do({ do: "make", name: name.value, turns, newest: which.value === "newest" ? Number(count.value) : 0, shared });
  }

  async #do(body) {
    if (this.#sent) return false;
    this.#sent = true;
    const told = find(".told-line", this.#place);
    try {
      told.textContent = (await post("/api/queues", body)).told;
      told.classList.remove("error");
      await this.look();
      return true;
    } catch (problem) {
      told.textContent = problem.message;
      told.classList.add("error");
      return false;
    } finally {
      this.#sent = false;
      told.focus();
    }
  }

  #line({ id, name, closed, answers, shared, raters }) {
    const words = this.#words;
    const whom = shared.map(({ kind, who }) => (kind === "all" ? words.all : kind === "group" ? fill(words.group, { who }) : who)).join(", ");
    const rated = new Map(raters);
    for (const { kind, who } of shared) if (kind === "person" && !rated.has(who)) rated.set(who, 0);
    const far = [...rated].map(([who, done]) => el("li", {}, `${who}: ${fill(words.done, { done, answers })} `,
      el("progress", { max: answers || 1, value: done, "aria-hidden": "true" })));
    const press = () => this.#do({ do: closed ? "open" : "close", id });
    return el("li", { class: "queue" },
      el("p", {}, el("strong", {}, name), " ", closed ? el("span", { class: "badge" }, words.closed) : ""),
      el("p", { class: "count" }, `${words.with}: ${whom}`),
      far.length ? el("ul", { class: "said" }, ...far) : el("p", { class: "count" }, words.nobody),
      el("div", { class: "row" }, latecomer(fill(closed ? words.open : words.close, { name }), { class: "chip small", onclick: press })));
  }
}
