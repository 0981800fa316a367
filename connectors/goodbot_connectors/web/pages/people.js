// SPDX-License-Identifier: Apache-2.0
// Everybody whom the bot knows, for owners: who asks to talk, what each may, and what they taught.
// Each button is a command of the owner's.

import { get } from "/files/api.js";
import { placeName } from "/files/card.js";
import { percent } from "/files/chart.js";
import { announce, button, coded, el, find } from "/files/dom.js";
import { banner } from "/files/header.js";
import { Page } from "/files/page.js";
import { locale, say } from "/files/texts.js";

const ROLES = [["owner", "page_is_owner"], ["rater", "page_is_rater"], ["talker", "page_is_talker"], ["", "page_no_role"]];
const SURE = { owner: ["page_sure_owner", "page_sure_owner_asks"], "": ["page_sure_none", "page_sure_none_asks"] };
const DISAGREES = { own: "page_disagrees_own", others: "page_disagrees_others" };
const kappas = new Intl.NumberFormat(locale, { minimumFractionDigits: 2, maximumFractionDigits: 2 });
const AGAIN_MS = 500; // the second half of a double click was not meant for the question

class People extends Page {
  #form = find("#filters");
  #pages = 1;
  #asked = 0;
  #places = new Map(); // by who it is: where they stand
  #made = 0;

  ready() {
    const given = new URLSearchParams(location.search);
    for (const name of ["text", "role"]) this.#form.elements[name].value = given.get(name) || "";
    let timer = 0;
    const soon = (event) => {
      event.preventDefault();
      clearTimeout(timer);
      timer = setTimeout(() => this.#changed(), 300);
    };
    this.#form.addEventListener("input", soon);
    this.#form.addEventListener("submit", soon);
    find("#more").addEventListener("click", () => this.#further());
  }

  async load() {
    if (!this.may.has("people")) return find("#count").replaceChildren(say("page_people_owners"));
    const asked = ++this.#asked;
    const query = this.#query();
    const pages = [await get("/api/people", query)];
    while (pages.length < this.#pages && pages.at(-1).after) {
      pages.push(await get("/api/people", { ...query, after: pages.at(-1).after }));
    }
    if (asked !== this.#asked) return undefined; // somebody has typed on
    const people = pages.flatMap((page) => page.people);
    const { asking, ask, count } = pages[0];
    this.#stand("#asking", asking.map(({ who }) => `asks ${who}`), () => el("li", { class: "person asks" }, el("p", { class: "who" }), el("div", { class: "row" }), toldPlace()));
    for (const one of asking) this.part(`#${this.#places.get(`asks ${one.who}`).id}`, one, () => this.#ask(one));
    find("#requests").hidden = !find("#asking").children.length;
    find("#asking-more").textContent = ask > asking.length ? say("page_more_wait", { count: ask - asking.length }) : "";
    this.#stand("#list", people.map(({ id }) => id), () => el("li", { class: "person" },
      el("details", {}, el("summary", {}, el("span", { class: "head" })), el("div", { class: "more" }), toldPlace())));
    for (const one of people) this.part(`#${this.#places.get(one.id).id}`, one, () => this.#draw(one));
    find("#count").textContent = count ? say("page_people_count", { count }) : say("page_nobody");
    find("#more").hidden = !pages.at(-1).after;
    return undefined;
  }

  #query() {
    const query = { text: this.#form.elements.text.value.trim(), role: this.#form.elements.role.value };
    return Object.fromEntries(Object.entries(query).filter(([, said]) => said));
  }

  async #changed() {
    const kept = new URLSearchParams(this.#query()).toString();
    history.replaceState(null, "", kept ? `?${kept}` : location.pathname);
    this.#pages = 1;
    for (const told of document.querySelectorAll("#list .told")) told.replaceChildren();
    await this.#anew();
  }

  async #further() {
    const before = find("#list").children.length;
    this.#pages += 1;
    await this.#anew();
    find("summary", find("#list").children[before] || find("#list"))?.focus();
  }

  async #anew() {
    try {
      await this.load();
    } catch (problem) {
      banner(problem.message);
    }
  }

  // A place for each, in their order; who is gone keeps theirs while something is told there.
  #stand(list, keys, make) {
    const old = [...find(list).children];
    const places = keys.map((key) => {
      if (!this.#places.has(key)) this.#places.set(key, Object.assign(make(), { id: `person-${this.#made += 1}` }));
      const place = this.#places.get(key);
      place.classList.remove("gone");
      return place;
    });
    for (const [n, place] of old.entries()) {
      if (places.includes(place)) continue;
      for (const [key, one] of this.#places) if (one === place) this.#places.delete(key);
      if (!find(".told", place).children.length) continue;
      find(".more, .row", place).replaceChildren();
      place.classList.add("gone");
      places.splice(Math.min(n, places.length), 0, place);
    }
    if (places.length === old.length && places.every((place, n) => place === old[n])) return;
    const focused = find(list).contains(document.activeElement) && document.activeElement;
    find(list).replaceChildren(...places);
    if (focused?.isConnected) focused.focus();
  }

  #command(label, words, more = {}) {
    return button(label, { class: "chip small", ...more, onclick: ({ target }) => this.do({ say: `/rl ${words}` }, target) });
  }

  #ask({ who, name }) {
    const place = this.#places.get(`asks ${who}`);
    find(".who", place).replaceChildren(name ? say("page_wants_named", { name, who }) : say("page_wants", { who }));
    find(".row", place).replaceChildren(this.#command(say("page_may_talk"), `people grant talker ${who}`),
      this.#command(say("page_may_rate"), `people grant rater ${who}`), this.#command(say("page_no"), `people refuse ${who}`));
  }

  #draw(one) {
    const place = this.#places.get(one.id);
    const names = one.accounts.map(({ who }) => who);
    place.classList.toggle("turned", Object.keys(one.alarms).length > 0);
    find(".head", place).replaceChildren(
      el("strong", {}, names.join(", ")),
      el("span", { class: `badge ${one.role}` }, say(ROLES.find(([role]) => role === one.role)[1])),
      one.you ? el("span", { class: "badge" }, say("page_you")) : "",
      ...Object.keys(one.alarms).map((against) => el("span", { class: "badge turned" }, say(DISAGREES[against]))),
      el("span", { class: "meta" }, [
        [...new Set(names.map((who) => placeName(who.split(":")[0])))].join(", "), ...one.groups,
        one.ratings && say("page_ratings_count", { count: one.ratings }),
        one.taught ? learntFrom(one.taught) : "",
        one.agreement ? say("page_agreement", { kappa: kappas.format(one.agreement.kappa) }) : "",
      ].filter(Boolean).join(" · ")));
    find(".more", place).replaceChildren(
      ...Object.values(one.alarms).map((told) => el("p", { class: "alarm" }, say("page_alarm", { told }))),
      one.agreement ? el("p", {}, say("page_agreement_how", { answers: one.agreement.answers, kappa: kappas.format(one.agreement.kappa) })) : "",
      ...one.accounts.map((account) => this.#account(account)),
      el("div", { class: "row" }, ...this.#buttons(one)));
  }

  #account({ who, role, granted, grants, unlink }) {
    const parts = [el("strong", { class: "who" }, who), el("span", { class: "count" }, granted.join(" ") || say("page_has_no_role"))];
    if (grants) parts.push(this.#roles(who, role));
    if (unlink.startsWith("/rl ")) parts.push(el("div", { class: "row" }, this.#command(say("page_unlink"), unlink.slice(4))));
    else if (unlink) parts.push(el("p", { class: "count" }, ...coded(say("page_unlink_how", { command: unlink }))));
    return el("div", { class: "account" }, ...parts);
  }

  #roles(who, now) {
    const choice = el("select", {}, ...ROLES.map(([role, label]) => el("option", { value: role, selected: role === now }, say(label))));
    const change = el("button", { type: "submit", class: "chip small", disabled: true }, say("page_change"));
    let since = 0;
    choice.addEventListener("change", () => {
      since = 0;
      change.textContent = say("page_change");
      change.disabled = choice.value === now;
    });
    const take = (event) => {
      event.preventDefault();
      const sure = SURE[choice.value];
      if (choice.value === now || (since && event.timeStamp - since < AGAIN_MS)) return;
      if (sure && !since) {
        since = event.timeStamp;
        change.textContent = say(sure[0]);
        announce(say(sure[1]));
        return;
      }
      this.do({ say: `/rl people ${choice.value ? `grant ${choice.value}` : "revoke"} ${who}` }, change);
    };
    return el("form", { onsubmit: take }, el("label", {}, el("span", { class: "label" }, say("page_role")), choice), change);
  }

  #buttons({ accounts: [{ who }], you, ratings, left_out: leftOut }) {
    return [
      ratings || leftOut ? el("a", { class: "chip small as-button", href: `/ratings?${new URLSearchParams({ person: who })}` }, say("page_their_ratings")) : "",
      ratings ? this.#command(say("page_leave_out_theirs"), `rollback person ${who}`) : "",
      leftOut ? this.#command(say("page_count_again"), `rollback person ${who} never`) : "",
      this.#command(say(you ? "page_forget_me" : "page_forget_them"), `forget ${you ? "me" : who}`),
    ];
  }
}

function toldPlace() {
  return el("div", { class: "told", role: "status", tabindex: "-1" });
}

function learntFrom(part) {
  return part < 0.01 ? say("page_of_learnt_few", { share: percent(0.01) }) : say("page_of_learnt", { share: percent(part) });
}

new People().start();
