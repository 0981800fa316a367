// SPDX-License-Identifier: Apache-2.0
// All versions, as owners may see them: where each comes from, two of them compared, and a way back.

import { get } from "/files/api.js";
import { day, percent, versionName } from "/files/chart.js";
import { copyButton } from "/files/copy.js";
import { pairOf } from "/files/differ.js";
import { button, coded, el, find } from "/files/dom.js";
import { banner } from "/files/header.js";
import { markdown } from "/files/markdown.js";
import { Page } from "/files/page.js";
import { say } from "/files/texts.js";

const STATES = {
  answers: "page_state_answers", tried: "page_state_tried", waits: "page_state_waits", before: "page_state_before",
  back: "page_state_back", imported: "page_state_imported", withdrawn: "page_state_withdrawn", other: "page_state_other",
  refused: "page_state_refused",
};
const AHEAD = ["tried", "waits", "imported"]; // to let one of these answer is no way back

class Versions extends Page {
  #by = false; // how they stand by base model is shown
  #stand = () => {}; // draws how they stand
  #two = null; // those that are compared; null: the one that answers and the one before

  ready() {
    for (const id of ["first", "second"]) {
      find(`#${id}`).addEventListener("change", () => this.#choose(Number(find("#first").value), Number(find("#second").value)));
    }
    find("#choose").addEventListener("click", ({ target }) => this.do({ say: "/rl compare" }, target));
    find("#by-base").addEventListener("click", ({ target }) => {
      this.#by = !this.#by;
      target.setAttribute("aria-pressed", String(this.#by));
      this.#stand();
    });
    find("#ask").addEventListener("submit", (event) => {
      event.preventDefault();
      const [field, names] = [find("#question"), this.#two.map(versionName).join(" ")];
      if (field.value.trim()) this.do({ say: `/rl compare ${names} ${field.value.trim()}` }, field);
      field.value = "";
    });
  }

  async load() {
    if (!this.may.has("adapters")) return find("#answers").replaceChildren(say("page_versions_owners"));
    let found = await get("/api/versions", this.#two ? { first: this.#two[0], second: this.#two[1] } : {});
    if (!this.#two && (this.#two = usual(found.seen))) found = await get("/api/versions", { first: this.#two[0], second: this.#two[1] });
    find("#answers").textContent = found.answers;
    this.part("#tree", found.seen.map((one) => [idOf(one), one.depth]), () => this.#grow(found.seen));
    const now = found.seen.find(({ state }) => state === "answers")?.version;
    for (const one of found.seen) this.part(`#${idOf(one)}`, [one, found.held, now], () => this.#draw(one, found));
    if (found.asks || found.places.length || found.bases.length) this.part("#blind", [found.asks, found.places, found.bases], () => this.#blind(found));
    if (found.compared) this.part("#compare", [this.#two, found.compared, found.seen], () => this.#compare(found));
    return undefined;
  }

  // A place for each, in their order; what is open, or told there, stays.
  #grow(seen) {
    let least = Infinity;
    find("#tree").replaceChildren(...seen.map((one, n) => {
      const place = document.getElementById(idOf(one)) || placeFor(one);
      least = Math.min(least, one.depth);
      place.style.setProperty("--depth", one.depth);
      place.style.setProperty("--from", least);
      place.classList.toggle("begins", !(seen[n - 1]?.depth >= one.depth));
      return place;
    }));
  }

  #draw(one, { held, seen }) {
    const place = document.getElementById(idOf(one));
    place.classList.toggle("answers", one.state === "answers");
    find(".head", place).replaceChildren(
      el("strong", {}, one.version === null ? say("page_training_from", { name: lower(one.parent) }) : nameOf(one.version)),
      el("span", { class: `badge ${one.state}` }, say(STATES[one.state])),
      one.pinned ? el("span", { class: "badge" }, say("page_state_kept")) : "",
      el("span", { class: "meta" }, [one.made_at && date(one.made_at), one.liked && say("page_liked_by", { share: likedOf(one) })].filter(Boolean).join(" · ")),
      one.told ? el("span", { class: "why words" }, markdown(one.told)) : "");
    if (one.version === null) return;
    const now = seen.find(({ state }) => state === "answers");
    const write = ({ target }) => this.do({ say: `/rl adapters export ${one.version}` }, target);
    const [exporting, command] = one.export ? exportOf(one, write) : ["", ""];
    find(".more", place).replaceChildren(
      seen.length === 1 ? el("p", {}, say("page_first_version")) : "",
      one.version ? el("p", {}, originOf(one)) : "",
      one.learnt ? el("p", {}, say("page_has_changed", { what: one.learnt })) : "",
      held && one.state === "answers" ? el("p", {}, say("page_you_keep")) : "",
      el("div", { class: "row" }, ...this.#buttons(one, held, now), exporting), command);
  }

  #buttons({ version, state, usable, pinned }, held, now) {
    const name = lower(version);
    const command = (label, words, more = {}) => button(label, {
      class: "chip small", ...more, onclick: ({ target }) => this.do({ say: `/rl ${words}` }, target),
    });
    const found = [];
    if (usable && state !== "answers" && !held) {
      found.push(command(say(AHEAD.includes(state) ? "page_let_answer" : "page_roll_back", { name }), `rollback ${version || "base"}`));
    }
    if (version && pinned) found.push(command(say("page_let_go", { name }), `adapters unpin ${version}`));
    if (version && usable && !pinned) found.push(command(say("page_keep_it", { name }), `adapters pin ${version}`, { title: say("page_files_stay") }));
    if (now && version !== now.version) {
      found.push(button(say("page_compare_with", { name: versionName(now.version) }), {
        class: "chip small", onclick: async () => { await this.#choose(version, now.version); find("#compare").focus(); },
      }));
    }
    return found;
  }

  #blind({ asks, places, bases }) {
    find("#choose").hidden = !asks;
    find("#by-base").hidden = !bases.length || !places.length;
    find("#asks").replaceChildren(asks ? el("p", {}, say("page_blind_pairs", { count: asks })) : "");
    this.#stand = () => {
      const by = bases.length && (this.#by || !places.length);
      find("#places").replaceChildren(...(by ? basesOf(bases) : placesOf(places)));
    };
    this.#stand();
  }

  async #choose(first, second) {
    this.#two = [first, second];
    try {
      return await this.load();
    } catch (problem) {
      return banner(problem.message);
    }
  }

  #compare({ compared: { first, second, told, pairs, measured, features }, seen }) {
    const versions = seen.filter(({ version }) => version !== null);
    for (const [n, id] of ["first", "second"].entries()) {
      find(`#${id}`).replaceChildren(...versions.map(({ version }) => el("option", {
        value: version, selected: version === this.#two[n], disabled: version === this.#two[1 - n],
      }, nameOf(version))));
    }
    const both = [first, second].map((version) => versions.find((one) => one.version === version));
    const row = (head, of) => [head, ...both.map((one) => of(one) || "–")];
    find("#compared").replaceChildren(
      table(["", ...both.map((one) => nameOf(one.version))], [
        row(say("page_made"), (one) => one.made_at && date(one.made_at)),
        row(say("page_learnt_from"), (one) => one.made_of),
        row(say("page_changed"), (one) => one.learnt),
        row(say("page_liked"), likedOf)]),
      ...told.map((one) => el("p", {}, one)),
      ...(features.length ? [
        table([say("page_measured"), ...both.map((one) => nameOf(one.version)), say("page_shift")], features.map((one) => [
          one.name, one.first, one.second, one.clear ? el("mark", {}, one.change) : one.change]), { id: "measured" }),
        el("p", { class: "count" }, measured)] : []),
      ...pairs.map((pair) => pairOf(pair, both.map((one) => nameOf(one.version)))),
      el("p", { class: "count" }, say(pairs.length ? "page_own_questions" : "page_no_questions")));
  }
}

function usual(seen) {
  const newest = seen.find(({ state }) => state === "answers");
  const one = newest?.version ? newest : seen.find(({ version }) => version);
  return one ? [one.parent, one.version] : null;
}

function idOf({ version, parent }) {
  return version === null ? `refused-${parent}` : `version-${version}`;
}

function nameOf(version) {
  return version ? versionName(version) : say("page_base_model_first");
}

function lower(version) {
  return version ? versionName(version) : say("page_the_base_model");
}

function originOf({ parent, made_of: what }) {
  const name = lower(parent);
  return what ? say("page_comes_from_learnt", { name, what }) : say("page_comes_from", { name });
}

// Behind a button: `write` makes a file at the bot's machine; the command, typed there, any form at any place.
function exportOf({ version, export: command }, write) {
  const name = lower(version);
  const place = el("div", { class: "command", hidden: true }, button(say("page_export_write"), { class: "chip small", onclick: write }),
    el("p", {}, ...coded(say("page_export_how"))), el("code", {}, command),
    copyButton(() => command, { class: "chip small", "aria-label": say("page_copy_command", { place: name }) }));
  const node = button(say("page_export_it", { name }), { class: "chip small", "aria-expanded": "false", onclick: () => {
    place.hidden = !place.hidden;
    node.setAttribute("aria-expanded", String(!place.hidden));
  } });
  return [node, place];
}

function placesOf(places) {
  if (!places.length) return [];
  const by = places.find(({ version, by }) => version === by);
  return [
    el("p", { class: "count" }, say("page_blind_how", { name: lower(by.version) })),
    table(["page_version_head", "page_chosen", "page_between", "page_choices_made"].map((key) => say(key)), places.map((one) => (
      one === by ? [nameOf(one.version), "–", "–", one.choices] : [nameOf(one.version), ...chosenOf(one)])))];
}

function basesOf(bases) {
  return [
    el("p", { class: "count" }, say("page_bases_how")),
    table(["page_base_head", "page_chosen", "page_between", "page_choices_made"].map((key) => say(key)), bases.map((one) => [one.model, ...chosenOf(one)]))];
}

function chosenOf({ share, low, high, choices }) {
  return [percent(share), say("page_bounds", { low: percent(low), high: percent(high) }), choices];
}

function date(seconds) {
  return day.format(new Date(1000 * seconds));
}

function likedOf({ liked }) {
  if (!liked) return "";
  const [share, low, high] = [liked.share, liked.low, liked.high].map(percent);
  return say("page_liked_range", { share, low, high, rated: liked.rated });
}

function table(heads, rows, more = {}) {
  return el("div", { class: "figures", ...more }, el("table", {},
    el("thead", {}, el("tr", {}, ...heads.map((head) => (head ? el("th", { scope: "col" }, head) : el("td"))))),
    el("tbody", {}, ...rows.map(([head, ...cells]) => el("tr", {}, el("th", { scope: "row" }, head), ...cells.map((cell) => el("td", {}, cell)))))));
}

function placeFor(one) {
  if (one.version === null) return el("li", { id: idOf(one), class: "node" }, el("div", { class: "head" }));
  return el("li", { id: idOf(one), class: "node" },
    el("details", { open: one.state === "answers" }, el("summary", {}, el("span", { class: "head" })),
      el("div", { class: "more" }), el("div", { class: "told", role: "status", tabindex: "-1" })));
}

new Versions().start();
