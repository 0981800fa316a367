// SPDX-License-Identifier: Apache-2.0
// Answers that look wrong by a rule: left out by a press, taken in again by another, and then trained anew.

import { post } from "/files/api.js";
import { button, el, find, latecomer } from "/files/dom.js";
import { signedOut } from "/files/header.js";
import { say } from "/files/texts.js";

const LONGEST = 4000;
const RULES = {
  repeats: "page_rule_repeats", other_script: "page_rule_script", contact: "page_rule_contact",
  insult: "page_rule_insult", filtered: "page_rule_filtered", judged: "page_rule_judged", long: "page_rule_long", doubtful: "page_rule_doubtful", odd: "page_rule_odd",
};

export class Flags {
  #page;

  constructor(page, { data: { rated, rules, people } }, hint = say("page_flags_first")) {
    this.#page = page;
    const found = Object.entries(rules).filter(([, { count }]) => count);
    this.nodes = found.length || people.length ? [
      el("p", { class: "count" }, hint),
      el("ul", { class: "finds" },
        ...found.map(([name, { count, answers }]) => this.#flag(say("page_flagged", { what: Object.hasOwn(RULES, name) ? say(RULES[name]) : name, count }), answers, count)),
        ...people.map((one) => this.#flag(say("page_opposite", { who: one.person, against: one.against, shared: one.shared }), one.answers, one.against, one.person)))]
      : [el("p", {}, say("page_nothing_wrong", { count: rated }))];
  }

  #flag(told, ids, count, person = "") {
    const ask = button(say(ids.length < count ? "page_leave_newest" : "page_leave_all", { count: ids.length }), { class: "chip small", onclick: ({ target }) => this.#sure(target, ids) });
    const all = person && this.#page.may.has("rollback") ? button(say("page_leave_person"), {
      class: "chip small", onclick: ({ target }) => this.#page.do({ say: `/rl rollback person ${person}` }, target),
    }) : "";
    return el("li", { class: "flag" }, el("p", {}, told),
      el("div", { class: "row" }, el("a", { class: "chip small as-button", href: `/ratings?${new URLSearchParams({ turns: some(ids) })}` }, say("page_look_at_them")), ask, all, person ? el("a", { class: "chip small as-button", href: `/ratings?${new URLSearchParams({ person })}` }, say("page_their_ratings")) : ""),
      el("details", { class: "figures" }, el("summary", {}, say(ids.length === 1 ? "page_its_id" : "page_their_ids")), el("p", { class: "ids" }, ...ids.flatMap((id) => [el("code", {}, id), " "]))),
      el("div", { class: "told", role: "status", tabindex: "-1" }));
  }

  #sure(from, ids) {
    const place = find(".told", from.closest("li"));
    place.replaceChildren(
      el("p", {}, say("page_sure_flagged", { count: ids.length })),
      el("div", { class: "row" },
        latecomer(say("page_leave_out"), { class: "chip small", onclick: () => this.#change(place, ids, "out") }),
        button(say("page_no"), { class: "quiet small", onclick: () => { place.replaceChildren(); from.focus(); } })));
    place.focus();
  }

  async #change(place, ids, what) {
    place.replaceChildren(el("p", { class: "count waiting" }, say("page_moment")));
    place.focus();
    try {
      const { told } = await post("/api/ratings", { do: what, turns: ids });
      place.replaceChildren(el("p", {}, told), el("div", { class: "row" },
        what === "out" && this.#page.may.has("train")
          ? latecomer(say("page_train_again"), { class: "chip small", onclick: ({ target }) => this.#page.do({ say: "/rl train" }, target) }) : "",
        latecomer(say(what === "out" ? "page_count_them" : "page_leave_them"), { class: "quiet small", onclick: () => this.#change(place, ids, what === "out" ? "in" : "out") })));
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
