// SPDX-License-Identifier: Apache-2.0
// The words of one answer, each marked by whether a version finds it likelier than the version before did.

import { versionName } from "/files/chart.js";
import { el } from "/files/dom.js";
import { locale, say } from "/files/texts.js";

const LEAST = Math.log(1.1);
const MUCH = Math.log(2);
const times = new Intl.NumberFormat(locale, { minimumFractionDigits: 2, maximumFractionDigits: 2 });

// `tokens`: rows of [text, change in nats]. The lines differ in form, not only in colour; all figures are in a table.
export function heat({ version, before, tokens }) {
  const [now, ago] = [version, before].map((one) => (one ? versionName(one) : say("page_the_base_model")));
  return el("figure", { class: "heat" },
    el("figcaption", { class: "count" }, say("page_heat", { now, before: ago })),
    el("p", { class: "words plain" }, ...tokens.map(([text, change]) => {
      const way = Math.abs(change) < LEAST ? "" : change > 0 ? "up" : "down";
      return way && text.trim() ? el("span", { class: `${way}${Math.abs(change) >= MUCH ? " much" : ""}` }, text) : text;
    })),
    el("details", {}, el("summary", {}, say("page_figures")), el("table", {},
      el("thead", {}, el("tr", {}, el("th", { scope: "col" }, say("page_part")), el("th", { scope: "col" }, say("page_how_likely", { now, before: ago })))),
      el("tbody", {}, ...tokens.map(([text, change]) => el("tr", {},
        el("th", { scope: "row" }, text.trim() || say(text ? "page_space" : "page_the_end")),
        el("td", {}, say("page_times", { times: times.format(Math.exp(change)) }))))))));
}
