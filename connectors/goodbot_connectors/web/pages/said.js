// SPDX-License-Identifier: Apache-2.0
// What people said of an answer, in words: its ratings, and what they wrote.

import { el, when } from "/files/dom.js";
import { listed, say } from "/files/texts.js";

export function ownOf({ ratings }) {
  const mine = ratings.find(({ who, counts }) => !who && counts);
  if (!mine) return {};
  return {
    ...(mine.thumb ? { thumb: Math.sign(mine.thumb) } : {}),
    ...(mine.stars === null ? {} : { stars: Math.round((mine.stars + 1) * 2) + 1 }),
  };
}

function ratingOf({ thumb, stars }) {
  const given = stars !== null && say("page_stars_of", { stars: Math.round((stars + 1) * 2) + 1 });
  return listed(thumb && say(thumb > 0 ? "page_good_one" : "page_bad_one"), given) || say("page_neither");
}

export function ratedBy(said) {
  const told = say("page_rated_as", { who: said.who || say("page_you"), rating: ratingOf(said), when: when(1000 * said.at) });
  return said.counts ? told : say("page_and_left_out", { said: told });
}

const WORDS = { better: ["page_would_left_out", "page_would_have_said"], comment: ["page_why_left_out", "page_said_why"] };

export function wordsOf({ who, kind, counts, text }) {
  return say((WORDS[kind] ?? WORDS.comment)[Number(counts)], { who: who || say("page_you"), text });
}

export function signs({ ratings }) {
  const value = ({ thumb, stars }) => thumb ?? stars;
  const good = ratings.filter((one) => value(one) > 0).length;
  const bad = ratings.filter((one) => value(one) < 0).length;
  return [good ? el("span", { class: "good-sign" }, say("page_good_count", { count: good })) : "", bad ? el("span", { class: "bad-sign" }, say("page_bad_count", { count: bad })) : ""];
}
