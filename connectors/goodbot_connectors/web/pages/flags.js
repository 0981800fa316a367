// SPDX-License-Identifier: Apache-2.0
// Answers that look wrong by a rule: left out by a press, taken in again by another, and then trained anew.

import { post } from "/files/api.js";
import { button, el, find, latecomer } from "/files/dom.js";
import { signedOut } from "/files/header.js";

const LONGEST = 4000;
const RULES = {
  repeats: "Repeats itself", other_script: "In other letters than its question",
  contact: "With a link, an e-mail address or a phone number that is not in the question", long: "Much longer than the others",
};

export class Flags {
  #page;

  constructor(page, { data: { rated, rules, people } }) {
    this.#page = page;
    const found = Object.entries(rules).filter(([, { count }]) => count);
    this.nodes = found.length || people.length ? [
      el("p", { class: "count" }, "Look at them first: a rule may be wrong. An answer in other letters may be the translation that somebody asked for. You see those that you may read."),
      el("ul", { class: "finds" },
        ...found.map(([name, { count, answers }]) => this.#flag(`${RULES[name] || name}: ${answersOf(count)}.`, answers, count)),
        ...people.map((one) => this.#flag(
          `${one.person} says the opposite of others of ${one.against.toLocaleString()} in ${one.shared.toLocaleString()} answers that others rated, too: more than chance.`,
          one.answers, one.against, one.person)))]
      : [el("p", {}, `Nothing looks wrong, in ${answersOf(rated)} that somebody rated.`)];
  }

  #flag(told, ids, count, person = "") {
    const newest = ids.length < count ? `the newest ${ids.length.toLocaleString()}` : `${count === 1 ? "it" : `all ${count.toLocaleString()}`}`;
    const ask = button(`Leave ${newest} out`, { class: "chip small", onclick: ({ target }) => this.#sure(target, ids) });
    const all = person && this.#page.may.has("rollback") ? button("Leave out all that they said", {
      class: "chip small", onclick: ({ target }) => this.#page.do({ say: `/rl rollback person ${person}` }, target),
    }) : "";
    return el("li", { class: "flag" }, el("p", {}, told),
      el("div", { class: "row" }, el("a", { class: "chip small as-button", href: `/ratings?${new URLSearchParams({ turns: some(ids) })}` }, "Look at them"), ask, all, person ? el("a", { class: "chip small as-button", href: `/ratings?${new URLSearchParams({ person })}` }, "Their ratings") : ""),
      el("details", { class: "figures" }, el("summary", {}, ids.length === 1 ? "Its id" : "Their ids"), el("p", { class: "ids" }, ...ids.flatMap((id) => [el("code", {}, id), " "]))),
      el("div", { class: "told", role: "status", tabindex: "-1" }));
  }

  #sure(from, ids) {
    const place = find(".told", from.closest("li"));
    place.replaceChildren(
      el("p", {}, `Leave ${answersOf(ids.length)} out? What was learnt from ${ids.length === 1 ? "it" : "them"} is withdrawn, too.`),
      el("div", { class: "row" },
        latecomer("Leave out", { class: "chip small", onclick: () => this.#change(place, ids, "out") }),
        button("No", { class: "quiet small", onclick: () => { place.replaceChildren(); from.focus(); } })));
    place.focus();
  }

  async #change(place, ids, what) {
    place.replaceChildren(el("p", { class: "count waiting" }, "One moment …"));
    place.focus();
    try {
      const { told } = await post("/api/ratings", { do: what, turns: ids });
      place.replaceChildren(el("p", {}, told), el("div", { class: "row" },
        what === "out" && this.#page.may.has("train")
          ? latecomer("Train again", { class: "chip small", onclick: ({ target }) => this.#page.do({ say: "/rl train" }, target) }) : "",
        latecomer(what === "out" ? "Count them again" : "Leave them out", { class: "quiet small", onclick: () => this.#change(place, ids, what === "out" ? "in" : "out") })));
    } catch (problem) {
      if (problem.status === 401) return signedOut();
      place.replaceChildren(el("p", { class: "error" }, problem.message));
    }
    return undefined;
  }
}

// As many as an address holds.
function some(ids) {
  let named = "";
  for (const id of ids) if (named.length + id.length < LONGEST) named += named ? `,${id}` : id;
  return named;
}

function answersOf(count) {
  return `${count.toLocaleString()} ${count === 1 ? "answer" : "answers"}`;
}
