// SPDX-License-Identifier: Apache-2.0
// What owners have done and others were refused: found again, and checked where it lies. The address says which.

import { get } from "/files/api.js";
import { button, el, find } from "/files/dom.js";
import { signedOut } from "/files/header.js";
import { Page } from "/files/page.js";
import { figure, locale, say } from "/files/texts.js";

const NAMES = ["person", "action", "result", "from", "to"];
const LOOKS = 20; // so often it is looked further for what is rare, before somebody has to ask
const FEW = 10;
const moment = new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeStyle: "short" });
const exactly = new Intl.DateTimeFormat(locale, { dateStyle: "full", timeStyle: "long" });
// What else an entry says, as it is stored, and the keys of its names.
const FACTS = {
  accounts: "page_fact_accounts", answer: "page_answer", answers: "page_answers_head", connector: "page_place", from: "page_before",
  gains: "page_fact_gains", made: "page_made", of: "page_fact_of", owners: "page_fact_owners", queue: "page_fact_queue",
  quoted: "page_fact_quoted", ratings: "page_fact_ratings", says: "page_fact_says", setting: "page_fact_setting", to: "page_fact_after",
  versions: "page_versions",
};

class Activity extends Page {
  #form = find("#filters");
  #before = 0;
  #asked = 0;
  #changed = 0; // the first entry that is not as it was written

  ready() {
    const given = new URLSearchParams(location.search);
    for (const name of NAMES) this.#choose(name, given.get(name) || "");
    let timer = 0;
    const soon = (event) => {
      event.preventDefault();
      clearTimeout(timer);
      timer = setTimeout(() => this.#again(), 300);
    };
    this.#form.addEventListener("input", soon);
    this.#form.addEventListener("submit", soon);
    find("#more").addEventListener("click", () => this.#find(this.#before));
    find("#check").addEventListener("click", () => this.#check());
  }

  // What is open stays: the page looks anew when somebody asks.
  async load() {
    if (!this.may.has("adapters")) return find("#count").replaceChildren(say("page_activity_owners"));
    if (this.#asked) return undefined;
    await this.#find(0, true);
    return this.#check();
  }

  #choose(name, value) {
    const field = this.#form.elements[name];
    if (field.tagName === "SELECT" && value && ![...field.options].some((one) => one.value === value)) field.append(el("option", { value }, value));
    field.value = value;
  }

  #again() {
    const kept = new URLSearchParams();
    for (const name of NAMES) if (this.#form.elements[name].value) kept.set(name, this.#form.elements[name].value);
    history.replaceState(null, "", kept.size ? `?${kept}` : location.pathname);
    return this.#find(0);
  }

  #query(before) {
    const value = (name) => this.#form.elements[name].value.trim();
    const day = (name, more) => {
      if (!value(name)) return "";
      const date = new Date(`${value(name)}T00:00`);
      date.setDate(date.getDate() + more);
      return date > 0 ? String(Math.floor(date.getTime() / 1000)) : ""; // a year is being typed
    };
    const query = { person: value("person"), action: value("action"), result: value("result"), since: day("from", 0), until: day("to", 1), before };
    return Object.fromEntries(Object.entries(query).filter(([, said]) => said));
  }

  async #find(before, first = false) {
    const asked = ++this.#asked;
    const list = find("#list");
    if (!before) list.replaceChildren();
    if (!before) find("#count").textContent = "";
    this.#before = before;
    for (let look = 0, found = 0; look < LOOKS && found < FEW; look += 1) {
      let page;
      try {
        page = await get("/api/activity", this.#query(this.#before));
      } catch (problem) {
        if (asked !== this.#asked) return undefined;
        if (first) this.#asked = 0; // who called tries again
        if (first) throw problem;
        if (problem.status === 401) return signedOut();
        return this.#tell(problem.message);
      }
      if (asked !== this.#asked) return undefined;
      for (const action of page.actions) this.#offer(action);
      list.append(...page.acts.map((one) => this.#line(one)));
      found += page.acts.length;
      this.#before = page.before;
      if (!page.before) break;
    }
    find("#more").hidden = !this.#before;
    const count = list.children.length;
    find("#count").textContent = count ? say(this.#before ? "page_entries_or_more" : "page_entries", { count }) : say("page_no_entry");
    return this.#tell("");
  }

  #offer(action) {
    const { options } = this.#form.elements.action;
    if (![...options].some(({ value }) => value === action)) this.#form.elements.action.append(el("option", { value: action, lang: "en" }, action));
  }

  #line(one) {
    if (![...find("#people").children].some(({ value }) => value === one.who)) find("#people").append(el("option", { value: one.who }));
    const details = el("details", {}, el("summary", {},
      el("strong", {}, one.what),
      el("span", { class: "meta" },
        el("span", {}, nameOf(one)),
        el("span", {}, moment.format(new Date(1000 * one.at))),
        one.typed ? el("code", {}, one.typed) : "",
        one.refused ? el("span", { class: "badge no" }, say("page_was_refused")) : el("span", {}, say(one.asked ? "page_was_asked" : "page_was_done")))));
    details.addEventListener("toggle", () => {
      if (details.open && !find("dl", details)) details.append(...this.#opened(one));
    });
    const line = el("li", { class: "act", "data-number": one.number }, details);
    line.classList.toggle("broken", one.number === this.#changed);
    return line;
  }

  #opened(one) {
    const told = [
      [say("page_when"), exactly.format(new Date(1000 * one.at))], [say("page_who"), nameOf(one)],
      [say("page_where"), one.where === "private" ? say("page_in_private") : one.where], [say("page_was_refused"), one.refused],
      ...Object.entries(one.facts).map(([name, said]) => [Object.hasOwn(FACTS, name) ? say(FACTS[name]) : name.charAt(0).toUpperCase() + name.slice(1), said]),
      [say("page_entry"), figure(one.number)], [say("page_hash"), one.hash && el("code", {}, one.hash)],
    ];
    const only = (name, value) => () => { this.#choose(name, value); this.#again(); find("#list").focus(); };
    return [
      el("dl", {}, ...told.filter(([, said]) => said).flatMap(([name, said]) => [el("dt", {}, name), el("dd", {}, said)])),
      el("div", { class: "row" }, button(one.you ? say("page_all_mine") : say("page_all_of", { who: one.who }), { class: "quiet small", onclick: only("person", one.who) }),
        button(say("page_all_action", { action: one.action }), { class: "quiet small", onclick: only("action", one.action) })),
    ];
  }

  async #check() {
    const [line, again] = [find("#checked"), find("#check")];
    again.disabled = true;
    line.textContent = say("page_checking");
    try {
      const { entries, changed, missing } = await get("/api/activity/checked");
      this.#changed = changed;
      line.textContent = verdict(entries, changed, missing);
      line.classList.toggle("bad", Boolean(changed || missing));
      for (const act of document.querySelectorAll(".act")) act.classList.toggle("broken", Number(act.dataset.number) === changed);
    } catch (problem) {
      if (problem.status === 401) return signedOut();
      line.textContent = problem.message;
    }
    again.hidden = false;
    again.disabled = false;
    return undefined;
  }

  #tell(text) {
    find("#told").textContent = text;
  }
}

function nameOf({ who, you }) {
  if (you) return say("page_you_named", { who });
  return who.startsWith("person-") ? say("page_forgotten_named", { who }) : who;
}

function verdict(count, changed, missing) {
  if (changed) return say("page_trail_changed", { entry: changed, count });
  if (missing) return say("page_trail_missing", { entry: missing });
  return say("page_trail_sound", { count });
}

new Activity().start();
