// SPDX-License-Identifier: Apache-2.0
// What this page says, in its reader's language: goodbot has put it into the page, as data.

const texts = JSON.parse(document.getElementById("texts").textContent);

export const language = document.documentElement.lang;

// For dates and numbers: of the reader's own kinds of this language (`en-GB`), the dearest. Some browsers
// tell the system's name (`en-US@posix`), which would be an error here.
const own = navigator.languages.filter((one) => /^[a-z]+(?:-[a-z\d]{2,8})*$/i.test(one) && one.split("-")[0].toLowerCase() === language);
export const locale = own[0] ?? language;

const category = new Intl.PluralRules(language);
const figures = new Intl.NumberFormat(locale);

export const figure = (number) => figures.format(number);

// The text with this key; its `{places}` are filled in, with words as they are.
export function say(key, values = {}) {
  const text = texts[key];
  const line = typeof text === "string" ? text : text[category.select(values[text.by])] ?? text.other;
  return line.replace(/\{(\w+)\}/g, (_, name) => shown(values[name]));
}

// Parts of one thing that is said; empty ones are left out.
export const listed = (...parts) => parts.filter(Boolean).join({ ja: "、", zh: "，" }[language] ?? ", ");

const shown = (value) => (typeof value === "number" ? figure(value) : value);
