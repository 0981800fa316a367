// SPDX-License-Identifier: Apache-2.0
// One answer of the inbox: where it was asked, the question, the answer, what can be said of it.

import { button, el, when } from "/files/dom.js";
import { markdown } from "/files/markdown.js";
import { RatingBar } from "/files/rating.js";

const NEW_ONES = "New answers show up here as people talk to goodbot.";
const THUMBS = [{ action: "good" }, { action: "bad" }];

export function card(answer, act) {
  const bar = new RatingBar({ buttons: THUMBS, act });
  bar.show(answer.said);
  const place = `${placeName(answer.connector)} · ${answer.kind === "private" ? "private" : "shared"}`;
  const version = answer.version ? `version ${answer.version}` : "base model";
  const element = el("article", { class: "card", "aria-label": "Answer to rate" },
    el("p", { class: "meta" }, el("span", { class: "badge" }, place),
      el("span", {}, when(answer.at)), el("span", {}, version)),
    el("div", { class: "asked" }, el("h2", { class: "label" }, "Question"), el("div", { class: "words plain" }, answer.question)),
    el("div", { class: "answered" }, el("h2", { class: "label" }, "Answer"), el("div", { class: "words" }, markdown(answer.answer))),
    bar.element);
  return { element, bar, summary: `Question: ${answer.question} Answer: ${answer.answer}` };
}

export function placeName(connector) {
  return connector === "web" ? "Browser" : connector.charAt(0).toUpperCase() + connector.slice(1);
}

// What stands there when no answer does: `skipped` were shown and not rated, `again()` shows them anew.
export function nothing({ narrowed, skipped, again }) {
  if (skipped) {
    const count = skipped === 1 ? "One answer" : `${skipped} answers`;
    return empty(`${count} skipped`, NEW_ONES, button("Show them again", { class: "chip", onclick: again }));
  }
  if (narrowed) return empty("Nothing matches", "Take a filter away to see more.");
  return empty("All rated", NEW_ONES);
}

// To somebody who may not rate.
export function notForYou() {
  return empty("Only people that my owner has chosen can rate my answers", "You can chat with it.");
}

function empty(heading, words, more = null) {
  return el("div", { class: "nothing" },
    el("img", { src: "/files/icon.svg", alt: "", width: "64", height: "64" }),
    el("h2", {}, heading), el("p", {}, words), more);
}
