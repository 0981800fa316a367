// SPDX-License-Identifier: Apache-2.0
// Which answers the inbox shows. Kept in the address, so that a reload or a bookmark shows the same.

import { el, find } from "/files/dom.js";
import { placeName } from "/files/card.js";
import { say } from "/files/texts.js";

const DAY = 86400;
const UNSURE = "unsure"; // a choice of `rated`, once there is something predicted
const NAMES = ["connector", "since", "rated", "text", "queue"];

export class Filters {
  #form = find("#filters");
  #known = new Set();

  // `changed()` when another selection is wanted.
  constructor(changed) {
    const given = new URLSearchParams(location.search);
    if (given.get("connector")) this.#add(given.get("connector"));
    if (given.get("rated") === UNSURE) this.#offer();
    for (const name of NAMES) if (given.has(name)) this.#form.elements[name].value = given.get(name);
    let timer = 0;
    const soon = () => {
      clearTimeout(timer);
      timer = setTimeout(() => { this.#remember(); changed(); }, 250);
    };
    this.#form.addEventListener("input", soon);
    this.#form.addEventListener("submit", (event) => { event.preventDefault(); soon(); });
  }

  get narrowed() {
    return NAMES.some((name) => this.#form.elements[name].value);
  }

  query() {
    const { connector, since, rated, text, queue } = this.#form.elements;
    const from = since.value ? Math.floor(Date.now() / 1000) - Number(since.value) * DAY : "";
    const unsure = rated.value === UNSURE ? "1" : "";
    return { connector: connector.value, since: from, rated: unsure ? "" : rated.value, unsure, text: text.value.trim(), queue: queue.value };
  }

  // Connectors that have answers can be chosen, though none of theirs is on this page.
  learn({ answers, connectors = [], unsure = false }) {
    if (unsure) this.#offer();
    for (const name of connectors) this.#add(name);
    for (const answer of answers) this.#add(answer.connector);
  }

  #offer() {
    const { rated } = this.#form.elements;
    if ([...rated.options].every(({ value }) => value !== UNSURE)) rated.append(el("option", { value: UNSURE }, say("page_unsure")));
  }

  #add(connector) {
    if (this.#known.has(connector)) return;
    this.#known.add(connector);
    this.#form.elements.connector.append(el("option", { value: connector }, placeName(connector)));
  }

  #remember() {
    const kept = new URLSearchParams();
    for (const name of NAMES) if (this.#form.elements[name].value) kept.set(name, this.#form.elements[name].value);
    history.replaceState(null, "", kept.size ? `?${kept}` : location.pathname);
  }
}
