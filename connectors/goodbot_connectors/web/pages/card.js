// SPDX-License-Identifier: Apache-2.0
// One answer of the inbox: where it was asked, the question, the answer, what can be said of it.

import { button, el, when } from "/files/dom.js";
import { colour } from "/files/highlight.js";
import { markdown } from "/files/markdown.js";
import { RatingBar } from "/files/rating.js";
import { say } from "/files/texts.js";

const THUMBS = [{ action: "good" }, { action: "bad" }];

export function card(answer, act) {
  const bar = new RatingBar({ buttons: THUMBS, act });
  bar.show(answer.said);
  const place = say(answer.kind === "private" ? "page_private" : "page_shared", { place: placeName(answer.connector) });
  const version = answer.version ? say("page_version", { version: String(answer.version) }) : say("page_base_model");
  const element = el("article", { class: "card", "aria-label": say("page_answer_to_rate") },
    el("p", { class: "meta" }, el("span", { class: "badge" }, place),
      el("span", {}, when(answer.at)), el("span", {}, version)),
    el("div", { class: "asked" }, el("h2", { class: "label" }, say("page_question")), el("div", { class: "words plain" }, answer.question)),
    el("div", { class: "answered" }, el("h2", { class: "label" }, say("page_answer")), colour(el("div", { class: "words" }, markdown(answer.answer)))),
    bar.element);
  return { element, bar, summary: say("page_both", { question: answer.question, answer: answer.answer }) };
}

export function placeName(connector) {
  return connector === "web" ? say("page_browser") : connector.charAt(0).toUpperCase() + connector.slice(1);
}

// What stands there when no answer does: `skipped` were shown and not rated, `again()` shows them anew.
export function nothing({ narrowed, skipped, again }) {
  if (skipped) {
    return empty(say("page_skipped", { count: skipped }), say("page_new_ones"), button(say("page_show_again"), { class: "chip", onclick: again }));
  }
  if (narrowed) return empty(say("page_no_match"), say("page_less_filters"));
  return empty(say("page_all_rated"), say("page_new_ones"));
}

// To somebody who may not rate.
export function notForYou() {
  return empty(say("page_only_chosen"), say("page_can_chat"));
}

function empty(heading, words, more = null) {
  return el("div", { class: "nothing" },
    el("img", { src: "/files/icon.svg", alt: "", width: "64", height: "64" }),
    el("h2", {}, heading), el("p", {}, words), more);
}
