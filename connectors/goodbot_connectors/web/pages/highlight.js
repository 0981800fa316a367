// SPDX-License-Identifier: Apache-2.0
// Colours for the code of an answer. A worker finds them with a kept library; it begins with the first block
// that names its language. What comes back are pieces of the text, never HTML. Where it fails, or takes too
// long over somebody's words, code stays the text that it is.

import { el } from "/files/dom.js";

const LONGEST = 20_000; // letters
const PATIENCE_MS = 5000;
const LOADING_MS = 30_000; // until the library is there, which a phone may be long about

const queue = []; // blocks and their languages; the first one is with the worker
let worker = null;
let timer = 0;

export function colour(root) {
  for (const code of root.querySelectorAll("code[data-language]")) {
    const { language } = code.dataset;
    delete code.dataset.language; // once each
    if (code.textContent.length <= LONGEST) queue.push({ code, language });
  }
  if (!timer) next();
  return root;
}

function next() {
  if (!queue.length) return;
  const { code, language } = queue[0];
  wait(worker ? PATIENCE_MS : LOADING_MS);
  try {
    worker ??= begun();
    worker.postMessage({ text: code.textContent, language });
  } catch {
    done(null); // here no worker begins
  }
}

function wait(milliseconds) {
  clearTimeout(timer);
  timer = setTimeout(() => done(null), milliseconds);
}

function begun() {
  const made = new Worker("/files/highlighter.js", { type: "module" });
  made.addEventListener("message", ({ data }) => {
    if (made !== worker) return undefined;
    return data ? done(data) : wait(PATIENCE_MS); // nothing yet: it has the library
  });
  made.addEventListener("error", () => made === worker && done(null));
  return made;
}

function done(pieces) {
  clearTimeout(timer);
  timer = 0;
  const { code } = queue.shift();
  if (pieces) {
    code.replaceChildren(...pieces.map(([kind, text]) => (kind ? el("span", { class: kind }, text) : text)));
  } else {
    worker?.terminate();
    worker = null; // the next block gets another one
  }
  next();
}
