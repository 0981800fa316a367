// SPDX-License-Identifier: Apache-2.0
// Rated answers: found again, looked at, rated anew, and left out by owners. The address says which are shown.

import { get, post } from "/files/api.js";
import { placeName } from "/files/card.js";
import { versionName } from "/files/chart.js";
import { button, el, find, when } from "/files/dom.js";
import { signedOut } from "/files/header.js";
import { heat } from "/files/heat.js";
import { markdown } from "/files/markdown.js";
import { Page } from "/files/page.js";
import { Queues } from "/files/queues.js";
import { RatingBar } from "/files/rating.js";

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
      const said = `${word}: ${answers} ${answers === 1 ? "answer" : "answers"}, ${Math.round(100 * bad)} % bad`;
      this.#topic(word).textContent = said;
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
    find("#named").textContent = `Of ${turns.split(",").length} that the report names`;
  }

  // On a phone the fields below the first are behind a button.
  #counted() {
    const set = NAMES.filter((name) => name !== "text" && this.#form.elements[name].value).length;
    find("#opener").textContent = set ? `Filters: ${set} set` : "Filters";
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
    find("#count").textContent = count ? `${count}${this.#after ? " or more" : ""} ${count === 1 ? "answer" : "answers"}` : "No rated answer matches.";
    return this.#tell("");
  }

  #line(one) {
    const box = el("input", { type: "checkbox", "aria-label": `Tick: ${one.question.slice(0, 80) || "an answer without a question"}`, onchange: () => this.#tick(one.turn, box.checked) });
    const details = el("details", {}, el("summary", {},
      el("span", { class: "line question" }, one.question || "(no question)"),
      el("span", { class: "line" }, one.answer),
      el("span", { class: "meta" }, ...signs(one), el("span", {}, when(1000 * one.at)), el("span", {}, placeName(one.connector)),
        el("span", {}, one.answered_by || (one.version ? versionName(one.version) : "base model")),
        one.left_out ? el("span", { class: "badge" }, "Left out") : "",
        one.taught.length ? el("span", { class: "badge" }, `Taught ${one.taught.map(versionName).join(", ")}`) : "")));
    const line = el("li", { class: `rated${one.left_out ? " out" : ""}`, "data-turn": one.turn }, el("label", { class: "tick" }, box), details);
    details.addEventListener("toggle", () => {
      if (details.open && !find(".opened", details)) details.append(this.#opened(one));
    });
    return line;
  }

  #opened(one) {
    const bar = new RatingBar({ buttons: THUMBS, act: (event) => this.#rate(event, one, bar) });
    bar.show(ownOf(one));
    const who = (name) => name || "You";
    const out = ({ counts }) => (counts ? "" : " (left out)");
    const place = [one.asked_by && `asked by ${one.asked_by}`, one.place && `in ${one.connector}:${one.place}`, one.kind].filter(Boolean).join(", ");
    return el("div", { class: "opened" },
      el("div", { class: "asked" }, el("h2", { class: "label" }, "Question"), el("div", { class: "words plain" }, one.question)),
      el("div", { class: "answered" }, el("h2", { class: "label" }, "Answer"), el("div", { class: "words" }, markdown(one.answer))),
      el("p", { class: "count" }, place),
      el("ul", { class: "said" },
        ...one.ratings.map((said) => el("li", {}, `${who(said.who)}: ${ratingOf(said)}, ${when(1000 * said.at)}${out(said)}`)),
        ...one.words.map((said) => el("li", {}, `${who(said.who)} ${said.kind === "better" ? "would have said" : "said why"}${out(said)}: ${said.text}`))),
      one.why_not ? el("p", { class: "count" }, one.why_not) : "",
      bar.element,
      el("div", { class: "owns" }, button("What it taught", { class: "quiet small", onclick: ({ target }) => this.#taught(one.turn, target.nextElementSibling) }),
        el("div", { class: "taught", role: "status", tabindex: "-1" })));
  }

  async #taught(turn, place) {
    place.replaceChildren(el("p", { class: "count waiting" }, "One moment …"));
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
    find("#ticked").textContent = `${this.#ticked.size} ticked`;
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
      return await this.#end(`${kept} of ${turns.length} rated ${what}.`, true);
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
      button("×", { class: "quiet small", "aria-label": `Delete the saved search ${name}`, onclick: () => { delete views[name]; this.#store(views); } })]));
  }

  #store(views) {
    localStorage.setItem(`views ${this.user}`, JSON.stringify(views));
    this.#views();
  }

  #keep() {
    const kept = this.#kept();
    if (!kept) return this.#tell("Fill in a field above first.", true);
    const name = [...new URLSearchParams(kept).values()].join(", ").slice(0, 40);
    return this.#store({ ...this.#known(), [name]: kept });
  }
}

function ownOf({ ratings }) {
  const mine = ratings.find(({ who, counts }) => !who && counts);
  if (!mine) return {};
  return {
    ...(mine.thumb ? { thumb: Math.sign(mine.thumb) } : {}),
    ...(mine.stars === null ? {} : { stars: Math.round((mine.stars + 1) * 2) + 1 }),
  };
}

function ratingOf({ thumb, stars }) {
  const words = [thumb && (thumb > 0 ? "good" : "bad"), stars !== null && `${Math.round((stars + 1) * 2) + 1} of 5 stars`].filter(Boolean);
  return words.join(", ") || "neither good nor bad";
}

function signs({ ratings }) {
  const value = ({ thumb, stars }) => thumb ?? stars;
  const good = ratings.filter((one) => value(one) > 0).length;
  const bad = ratings.filter((one) => value(one) < 0).length;
  return [good ? el("span", { class: "good-sign" }, `${good} good`) : "", bad ? el("span", { class: "bad-sign" }, `${bad} bad`) : ""];
}

new Ratings().start();
