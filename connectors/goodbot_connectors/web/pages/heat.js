// SPDX-License-Identifier: Apache-2.0
// The words of one answer, each marked by whether a version finds it likelier than the version before did.

import { versionName } from "/files/chart.js";
import { el } from "/files/dom.js";

const LEAST = Math.log(1.1);
const MUCH = Math.log(2);

// `tokens`: rows of [text, change in nats]. The lines differ in form, not only in colour; all figures are in a table.
export function heat({ version, before, tokens }) {
  const [now, ago] = [version, before].map((one) => (one ? versionName(one) : "the base model"));
  return el("figure", { class: "heat" },
    el("figcaption", { class: "count" }, `Solid line: ${now} finds it likelier than ${ago}. Dotted line: less likely. A thick line: twice as much, or half.`),
    el("p", { class: "words plain" }, ...tokens.map(([text, change]) => {
      const way = Math.abs(change) < LEAST ? "" : change > 0 ? "up" : "down";
      return way && text.trim() ? el("span", { class: `${way}${Math.abs(change) >= MUCH ? " much" : ""}` }, text) : text;
    })),
    el("details", {}, el("summary", {}, "Figures"), el("table", {},
      el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Part"), el("th", { scope: "col" }, `How likely to ${now}, beside ${ago}`))),
      el("tbody", {}, ...tokens.map(([text, change]) => el("tr", {},
        el("th", { scope: "row" }, text.trim() || (text ? "(a space or a new line)" : "(the end)")),
        el("td", {}, `${Math.exp(change).toFixed(2)} times`)))))));
}
