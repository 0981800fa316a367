// SPDX-License-Identifier: Apache-2.0
// Everybody whom the bot knows, for owners: who asks to talk, what each may, and what they taught.
// Each button is a command of the owner's.

import { get } from "/files/api.js";
import { placeName } from "/files/card.js";
import { percent } from "/files/chart.js";
import { announce, button, el, find } from "/files/dom.js";
import { banner } from "/files/header.js";
import { Page } from "/files/page.js";

const ROLES = [["owner", "Owner"], ["rater", "Rater"], ["talker", "Talker"], ["", "No role"]];
const SURE = { owner: "Yes, they may do everything", "": "Yes, take the role away" };
const DISAGREES = { own: "Disagrees with own older ratings", others: "Disagrees with other raters" };
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
    if (!this.may.has("people")) return find("#count").replaceChildren("Owners of this bot see its people here.");
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
    find("#asking-more").textContent = ask > asking.length ? `${ask - asking.length} more wait behind these.` : "";
    this.#stand("#list", people.map(({ id }) => id), () => el("li", { class: "person" },
      el("details", {}, el("summary", {}, el("span", { class: "head" })), el("div", { class: "more" }), toldPlace())));
    for (const one of people) this.part(`#${this.#places.get(one.id).id}`, one, () => this.#draw(one));
    find("#count").textContent = count ? `${count} ${count === 1 ? "person" : "people"}` : "Nobody matches.";
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
    find(".who", place).replaceChildren(name ? el("strong", {}, `“${name}”`) : "", name ? ` (${who})` : el("strong", {}, who),
      " wants to talk to me, and may not. Who may rate also teaches me.");
    find(".row", place).replaceChildren(this.#command("May talk", `people grant talker ${who}`),
      this.#command("May rate", `people grant rater ${who}`), this.#command("No", `people refuse ${who}`));
  }

  #draw(one) {
    const place = this.#places.get(one.id);
    const names = one.accounts.map(({ who }) => who);
    place.classList.toggle("turned", Object.keys(one.alarms).length > 0);
    find(".head", place).replaceChildren(
      el("strong", {}, names.join(", ")),
      el("span", { class: `badge ${one.role}` }, ROLES.find(([role]) => role === one.role)[1]),
      one.you ? el("span", { class: "badge" }, "You") : "",
      ...Object.keys(one.alarms).map((against) => el("span", { class: "badge turned" }, DISAGREES[against])),
      el("span", { class: "meta" }, [
        [...new Set(names.map((who) => placeName(who.split(":")[0])))].join(", "), ...one.groups,
        counted(one.ratings, "rating"),
        one.taught ? `${shareOf(one.taught)} of what I learnt` : "",
        one.agreement ? `agreement ${one.agreement.kappa.toFixed(2)}` : "",
      ].filter(Boolean).join(" · ")));
    find(".more", place).replaceChildren(
      ...Object.values(one.alarms).map((told) => el("p", { class: "alarm" }, `${told} It may be a change of mind, or an account in other hands.`)),
      one.agreement ? el("p", {}, `Of ${one.agreement.answers} answers that others rated too, they agree with most of the others: `
        + `${one.agreement.kappa.toFixed(2)} (Cohen’s kappa). 1 means always, 0 as often as by chance.`) : "",
      ...one.accounts.map((account) => this.#account(account)),
      el("div", { class: "row" }, ...this.#buttons(one)));
  }

  #account({ who, role, granted, grants, unlink }) {
    const parts = [el("strong", { class: "who" }, who), el("span", { class: "count" }, granted.join(" ") || "It has no role.")];
    if (grants) parts.push(this.#roles(who, role));
    if (unlink.startsWith("/rl ")) parts.push(el("div", { class: "row" }, this.#command("Unlink this account", unlink.slice(4))));
    else if (unlink) parts.push(el("p", { class: "count" }, "To part it from the others, run ", el("code", {}, unlink), " at the machine."));
    return el("div", { class: "account" }, ...parts);
  }

  #roles(who, now) {
    const choice = el("select", {}, ...ROLES.map(([role, label]) => el("option", { value: role, selected: role === now }, label)));
    const change = el("button", { type: "submit", class: "chip small", disabled: true }, "Change");
    let since = 0;
    choice.addEventListener("change", () => {
      since = 0;
      change.textContent = "Change";
      change.disabled = choice.value === now;
    });
    const take = (event) => {
      event.preventDefault();
      const sure = SURE[choice.value];
      if (choice.value === now || (since && event.timeStamp - since < AGAIN_MS)) return;
      if (sure && !since) {
        since = event.timeStamp;
        change.textContent = sure;
        announce(`${sure}?`);
        return;
      }
      this.do({ say: `/rl people ${choice.value ? `grant ${choice.value}` : "revoke"} ${who}` }, change);
    };
    return el("form", { onsubmit: take }, el("label", {}, el("span", { class: "label" }, "Role"), choice), change);
  }

  #buttons({ accounts: [{ who }], you, ratings, left_out: leftOut }) {
    return [
      ratings || leftOut ? el("a", { class: "chip small as-button", href: `/ratings?${new URLSearchParams({ person: who })}` }, "Their ratings") : "",
      ratings ? this.#command("Leave out what they rated", `rollback person ${who}`) : "",
      leftOut ? this.#command("Count it again", `rollback person ${who} never`) : "",
      this.#command(you ? "Forget me" : "Forget them", `forget ${you ? "me" : who}`),
    ];
  }
}

function toldPlace() {
  return el("div", { class: "told", role: "status", tabindex: "-1" });
}

function counted(count, what) {
  return count ? `${count} ${what}${count === 1 ? "" : "s"}` : "";
}

function shareOf(part) {
  return part < 0.01 ? "under 1%" : percent(part);
}

new People().start();
