// SPDX-License-Identifier: Apache-2.0
// A conversation becomes a file of whoever reads it: what this browser may show of it, as it was written.

import { get } from "/files/api.js";
import { announce, el } from "/files/dom.js";
import { locale, say } from "/files/texts.js";

const NAMES = { you: say("page_you") };
const moment = new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeStyle: "short" });

// `one`: { id, title }, as in the list.
export async function saveConversation({ id, title }) {
  let state;
  try {
    state = await get("/api/conversation", { id });
  } catch (problem) {
    return announce(problem.message);
  }
  const said = state.entries.filter(({ text }) => text).map(({ by, at, text }) => (
    `**${NAMES[by] || "goodbot"}** (${moment.format(new Date(at))})\n\n${text}\n`));
  const address = URL.createObjectURL(new Blob([[`# ${title}\n`, ...said].join("\n")], { type: "text/markdown" }));
  const name = title.replace(/[^\p{L}\p{N} _-]+/gu, " ").trim().slice(0, 60) || "goodbot";
  el("a", { href: address, download: `${name}.md` }).click();
  return setTimeout(() => URL.revokeObjectURL(address), 60_000); // some browsers begin to read it later
}
