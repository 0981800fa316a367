// SPDX-License-Identifier: Apache-2.0
// Rated answers: found again, looked at, rated anew, and left out by owners. The address says which are shown.

import { get, post } from "/files/api.js";
import { placeName } from "/files/card.js";
import { versionName } from "/files/chart.js";
import { button, el, find, when } from "/files/dom.js";
import { signedOut } from "/files/header.js";
import { heat } from "/files/heat.js";
import { colour } from "/files/highlight.js";
import { markdown } from "/files/markdown.js";
import { Page } from "/files/page.js";
import { Queues } from "/files/queues.js";
import { RatingBar } from "/files/rating.js";
import { ownOf, ratedBy, signs, wordsOf } from "/files/said.js";
import { listed, say } from "/files/texts.js";

const NAMES = ["text", "rating", "from", "to", "place", "person", "version", "topic", "also"];
const THUMBS = [{ action: "good" }, { action: "bad" }];
const PLACE = "inbox";
const LOOKS = 20; // so often it is looked further for what is rare, before somebody has to ask
const FEW = 10;

class Ratings extends Page {
  #form = find("#filters");
  #after = "";
  #asked = 0;
  #ticked = new Set();
  #turns = ""; // a few answers, as another page has named them

  ready() {
    this.#fill(new URLSearchParams(location.search));
    let timer = 0;
    const soon = (event) => {
      event.preventDefault();
      clearTimeout(timer);
      timer = setTimeout(() => this.#changed(), 300);
    };
    this.#form.addEventListener("input", soon);
    this.#form.addEventListener("submit", soon);
    find("#opener").addEventListener("click", ({ target }) => target.setAttribute("aria-expanded", String(target.getAttribute("aria-expanded") !== "true")));
    find("#more").addEventListener("click", () => this.#find(this.#after));
    find("#all").addEventListener("click", () => { this.#only(""); this.#changed(); find("#list").focus(); });
    find("#keep").addEventListener("click", () => this.#keep());
    find("#bulk").addEventListener("click", ({ target }) => target.dataset.do && this.#with(target.dataset.do));
    this.#views();
    this.#topics();
    if (this.may.has("people")) new Queues().look().catch(() => null); // for owners; the rest of the page is there
  }

  // With the share of each that is rated bad, for owners. One that was chosen stays, though it is none any more.
  async #topics() {
    const { topics } = await get("/api/topics").catch(() => ({ topics: [] }));
    for (const { word, answers, bad } of topics) {
      this.#topic(word).textContent = say("page_topic_share", { word, answers, share: Math.round(100 * bad) });
    }
  }

  // The choice of a topic; a new one where there is none yet.
  #topic(word) {
    const { options } = this.#form.elements.topic;
    if (![...options].some((one) => one.value === word)) options.add(el("option", { value: word }, word));
    return [...options].find((one) => one.value === word);
  }

  // What is open or ticked stays: the page looks anew when somebody asks.
  async load() {
    if (!this.#asked) await this.#find("", true);
  }

  #fill(given) {
    if (given.get("topic")) this.#topic(given.get("topic"));
    for (const name of NAMES) this.#form.elements[name].value = given.get(name) || "";
    this.#only(given.get("turns") || "");
    this.#counted();
  }

  #only(turns) {
    this.#turns = turns;
    find("#only").hidden = !turns;
    find("#named").textContent = say("page_report_names", { count: turns.split(",").length });
  }

  // On a phone the fields below the first are behind a button.
  #counted() {
    const set = NAMES.filter((name) => name !== "text" && this.#form.elements[name].value).length;
    find("#opener").textContent = set ? say("page_filters_set", { count: set }) : say("page_filters");
  }

  #kept() {
    const kept = new URLSearchParams();
    for (const name of NAMES) if (this.#form.elements[name].value) kept.set(name, this.#form.elements[name].value);
    if (this.#turns) kept.set("turns", this.#turns);
    return kept.toString();
  }

  #changed() {
    this.#counted();
    const kept = this.#kept();
    history.replaceState(null, "", kept ? `?${kept}` : location.pathname);
    return this.#find("");
  }

  #query() {
    const value = (name) => this.#form.elements[name].value.trim();
    const day = (name, more) => {
      if (!value(name)) return "";
      const date = new Date(`${value(name)}T00:00`);
      date.setDate(date.getDate() + more); // a day has 23 hours, at times, or 25
      return date > 0 ? String(Math.floor(date.getTime() / 1000)) : ""; // a year is being typed
    };
    const query = { since: day("from", 0), until: day("to", 1), [value("also") || "words"]: value("also") ? "1" : "" };
    for (const name of ["text", "rating", "place", "person", "version", "topic"]) query[name] = value(name);
    query.turns = this.#turns;
    return Object.fromEntries(Object.entries(query).filter(([, said]) => said));
  }

  async #find(after, first = false) {
    const asked = ++this.#asked;
    const list = find("#list");
    if (!after) {
      list.replaceChildren();
      find("#count").textContent = "";
      this.#tick(null);
    }
    let found = 0;
    this.#after = after;
    for (let look = 0; look < LOOKS && found < FEW; look += 1) {
      let page;
      try {
        page = await get("/api/ratings", { ...this.#query(), ...(this.#after ? { after: this.#after } : {}) });
      } catch (problem) {
        if (asked !== this.#asked) return undefined;
        if (first) this.#asked = 0; // who called tries again
        if (first) throw problem;
        if (problem.status === 401) return signedOut();
        return this.#tell(problem.message, true);
      }
      if (asked !== this.#asked) return undefined;
      list.append(...page.answers.map((one) => this.#line(one)));
      found += page.answers.length;
      this.#after = page.after;
      if (!page.after) break;
    }
    find("#more").hidden = !this.#after;
    const count = list.children.length;
    find("#count").textContent = count ? say(this.#after ? "page_answers_or_more" : "page_answers_count", { count }) : say("page_no_rated");
    return this.#tell("");
  }

  #line(one) {
    const box = el("input", { type: "checkbox", "aria-label": say("page_tick", { what: one.question.slice(0, 80) || say("page_unasked") }), onchange: () => this.#tick(one.turn, box.checked) });
    const details = el("details", {}, el("summary", {},
      el("span", { class: "line question" }, one.question || say("page_no_question")),
      el("span", { class: "line" }, one.answer),
      el("span", { class: "meta" }, ...signs(one), el("span", {}, when(1000 * one.at)), el("span", {}, placeName(one.connector)),
        el("span", {}, one.answered_by || (one.version ? versionName(one.version) : say("page_base_model"))),
        one.left_out ? el("span", { class: "badge" }, say("page_left_out")) : "",
        one.taught.length ? el("span", { class: "badge" }, say("page_taught", { versions: listed(...one.taught.map(versionName)) })) : "")));
    const line = el("li", { class: `rated${one.left_out ? " out" : ""}`, "data-turn": one.turn }, el("label", { class: "tick" }, box), details);
    details.addEventListener("toggle", () => {
      if (details.open && !find(".opened", details)) details.append(this.#opened(one));
    });
    return line;
  }

  #opened(one) {
    const bar = new RatingBar({ buttons: THUMBS, act: (event) => this.#rate(event, one, bar) });
    bar.show(ownOf(one));
    const spot = `${one.connector}:${one.place}`;
    const place = listed(one.asked_by && say("page_asked_by", { who: one.asked_by }),
      one.place && say("page_asked_in", { place: spot }), one.kind);
    return el("div", { class: "opened" },
      el("div", { class: "asked" }, el("h2", { class: "label" }, say("page_question")), el("div", { class: "words plain" }, one.question)),
      el("div", { class: "answered" }, el("h2", { class: "label" }, say("page_answer")), colour(el("div", { class: "words" }, markdown(one.answer)))),
      el("p", { class: "count" }, place),
      el("ul", { class: "said" },
        ...one.ratings.map((said) => el("li", {}, ratedBy(said))),
        ...one.words.map((said) => el("li", {}, wordsOf(said)))),
      one.why_not ? el("p", { class: "count" }, one.why_not) : "",
      bar.element,
      el("div", { class: "owns" }, button(say("page_what_taught"), { class: "quiet small", onclick: ({ target }) => this.#taught(one.turn, target.nextElementSibling) }),
        el("div", { class: "taught", role: "status", tabindex: "-1" })));
  }

  async #taught(turn, place) {
    place.replaceChildren(el("p", { class: "count waiting" }, say("page_moment")));
    try {
      const found = await get("/api/taught", { turn });
      place.replaceChildren(el("div", { class: "words" }, markdown(found.told.replaceAll("\n", "\n\n"))), found.version ? heat(found) : "");
    } catch (problem) {
      if (problem.status === 401) return signedOut();
      place.replaceChildren(el("p", { class: "error" }, problem.message));
    }
    return place.focus();
  }

  async #rate(event, one, bar) {
    try {
      const done = await this.outbox.add({ ...event, turn: one.turn, in: PLACE });
      bar.tell(done.text, [], done.outcome !== "accepted");
      return done;
    } catch (problem) {
      bar.tell(problem.message, [], true);
      return { outcome: "failed" };
    }
  }

  // One more or less of those that something is done with; null: none any more.
  #tick(turn, on) {
    if (turn === null) this.#ticked.clear();
    else if (on) this.#ticked.add(turn);
    else this.#ticked.delete(turn);
    for (const box of document.querySelectorAll(".tick input")) box.checked = this.#ticked.has(box.closest("li").dataset.turn);
    find("#bulk").hidden = !this.#ticked.size;
    find("#sure").hidden = true;
    find("#ticked").textContent = say("page_ticked", { count: this.#ticked.size });
  }

  async #with(what) {
    const turns = [...this.#ticked];
    if (what === "none") return this.#end("");
    if (what === "out" || what === "no") {
      find("#sure").hidden = what === "no";
      return find(what === "no" ? "[data-do=out]" : "[data-do=yes]").focus();
    }
    try {
      if (what === "yes" || what === "in") {
        const { told } = await post("/api/ratings", { do: what === "in" ? "in" : "out", turns });
        return await this.#end(told, true);
      }
      const done = await Promise.all(turns.map((turn) => this.outbox.add({ press: what, turn, in: PLACE })));
      const kept = done.filter(({ outcome }) => outcome === "accepted").length;
      return await this.#end(say(what === "good" ? "page_rated_good" : "page_rated_bad", { kept, count: turns.length }), true);
    } catch (problem) {
      return this.#tell(problem.message, true);
    }
  }

  async #end(told, anew = false) {
    this.#tick(null);
    if (anew) await this.#find("");
    this.#tell(told);
    find(told ? "#told" : "#list").focus();
  }

  #tell(text, bad = false) {
    find("#told").textContent = text;
    find("#told").classList.toggle("error", bad);
  }

  // Searches that this person has saved in this browser, by the address that shows them.
  #known() {
    try {
      return JSON.parse(localStorage.getItem(`views ${this.user}`) || "{}");
    } catch {
      return {};
    }
  }

  #views() {
    const views = this.#known();
    find("#views").replaceChildren(...Object.entries(views).flatMap(([name, kept]) => [
      button(name, { class: "chip small", onclick: () => { this.#fill(new URLSearchParams(kept)); this.#changed(); } }),
      button("×", { class: "quiet small", "aria-label": say("page_delete_search", { name }), onclick: () => { delete views[name]; this.#store(views); } })]));
  }

  #store(views) {
    localStorage.setItem(`views ${this.user}`, JSON.stringify(views));
    this.#views();
  }

  #keep() {
    const kept = this.#kept();
    if (!kept) return this.#tell(say("page_fill_first"), true);
    const name = [...new URLSearchParams(kept).values()].join(", ").slice(0, 40);
    return this.#store({ ...this.#known(), [name]: kept });
  }
}

new Ratings().start();
