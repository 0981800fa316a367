// SPDX-License-Identifier: Apache-2.0
// Two texts with the words marked that the other one does not have at that place.

import { el } from "/files/dom.js";
import { say } from "/files/texts.js";

const MOST = 1_000_000; // pairs of words that are looked at: longer texts are shown without marks

// A question and how two answered it, under their names.
export function pairOf({ prompt, before, after }, names) {
  const texts = marked(before || say("page_empty"), after || say("page_empty"));
  return el("article", { class: "pair" }, el("h3", {}, prompt),
    el("dl", {}, ...texts.map((parts, n) => el("div", {}, el("dt", { class: "label" }, names[n]), el("dd", { class: "words plain" }, ...parts)))));
}

// What each of the two shows: lists of strings and marks.
export function marked(one, other) {
  const [a, b] = [one, other].map((text) => text.match(/\s*\S+\s*/g) ?? [text]);
  const same = a.length * b.length > MOST ? null : common(a.map((word) => word.trim()), b.map((word) => word.trim()));
  return [a, b].map((words, side) => runs(words, same?.[side]));
}

// Which words of each are in the longest sequence of words that both have.
function common(a, b) {
  const wide = b.length + 1;
  const longest = new Uint16Array((a.length + 1) * wide);
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      longest[i * wide + j] = a[i] === b[j]
        ? longest[(i + 1) * wide + j + 1] + 1
        : Math.max(longest[(i + 1) * wide + j], longest[i * wide + j + 1]);
    }
  }
  const [mine, theirs] = [a.map(() => false), b.map(() => false)];
  for (let i = 0, j = 0; i < a.length && j < b.length;) {
    if (a[i] === b[j]) mine[i++] = theirs[j++] = true;
    else if (longest[(i + 1) * wide + j] >= longest[i * wide + j + 1]) i++;
    else j++;
  }
  return [mine, theirs];
}

function runs(words, same) {
  const found = [];
  words.forEach((word, n) => {
    const differs = Boolean(same && !same[n] && word.trim());
    if (found.at(-1)?.differs === differs) found.at(-1).text += word;
    else found.push({ differs, text: word });
  });
  return found.map(({ differs, text }) => {
    const end = text.trimEnd();
    return differs ? [el("mark", {}, end), text.slice(end.length)] : [text];
  }).flat();
}
