// SPDX-License-Identifier: Apache-2.0
// A worker: which pieces of code are words of its language, texts, numbers, names, remarks. The library's
// expressions may take long over somebody's words, so it runs where the page can end it, and where there is
// no page that it could write to.

import hljs from "/files/vendored/highlight.min.js";

const KINDS = new Map(Object.entries({
  "c-key": ["keyword", "built_in", "literal", "type", "name", "selector-tag", "section"],
  "c-text": ["string", "regexp", "char", "link", "code", "addition"],
  "c-number": ["number", "symbol", "bullet", "deletion"],
  "c-name": ["title", "attr", "attribute", "property", "variable", "template-variable", "selector-id", "selector-class"],
  "c-note": ["comment", "quote", "doctag", "meta"],
}).flatMap(([kind, scopes]) => scopes.map((scope) => [scope, kind])));

addEventListener("message", ({ data: { text, language } }) => postMessage(pieces(text, language)));
postMessage(null); // the library is there: the page's patience begins

function pieces(text, language) {
  const found = [];
  const walk = ({ children }, kind) => {
    for (const child of children) {
      if (typeof child !== "string") walk(child, KINDS.get(child.scope?.split(".")[0]) ?? "");
      else if (found.at(-1)?.[0] === kind) found.at(-1)[1] += child;
      else found.push([kind, child]);
    }
  };
  if (hljs.getLanguage(language)) walk(hljs.highlight(text, { language, ignoreIllegals: true })._emitter.root, "");
  // What is shown is what was written, whatever the library made of it.
  return found.map(([, piece]) => piece).join("") === text ? found : [["", text]];
}
