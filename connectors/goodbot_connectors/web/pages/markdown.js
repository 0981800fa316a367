// SPDX-License-Identifier: Apache-2.0
// A little Markdown as elements: code, headings, lists, quotes, tables, bold, italic, links to http(s).
// Nothing is ever parsed as HTML; what is not understood stays the text that it is.

import { copyButton } from "/files/copy.js";
import { el } from "/files/dom.js";
import { say } from "/files/texts.js";

const INLINE = /`([^`\n]+)`|\*\*([^*\n]+)\*\*|\*([^*\s][^*\n]*)\*|\[([^[\]\n]{1,300})\]\(([^\s()]{1,2000})\)|https?:\/\/[^\s<>"'`*[\]]{1,2000}/g;
const FENCE = /^ {0,3}(`{3,8})\s*([\w+#.-]{0,20})[^`]*$/;
const ITEM = /^ {0,6}(?:[-*+]|(\d{1,4})[.)]) +(.*)$/;
const HEADING = /^(#{1,6}) +(.*)$/;
const MARK = /^:?-+:?$/; // below a table's head
// Signs that turn the direction of reading can make a link look like another.
const TURNS = /[\u202a-\u202e\u2066-\u2069]/g;

export function markdown(text) {
  const result = document.createDocumentFragment();
  const lines = text.replace(/\r\n?/g, "\n").split("\n");
  let at = 0;
  let paragraph = [];
  const flush = () => {
    if (paragraph.length) result.append(el("p", {}, ...withBreaks(paragraph)));
    paragraph = [];
  };
  while (at < lines.length) {
    const line = lines[at];
    const fence = FENCE.exec(line);
    const heading = HEADING.exec(line);
    const rows = tableRows(lines, at);
    if (fence) {
      flush();
      const end = closing(lines, at + 1, fence[1]);
      result.append(code(lines.slice(at + 1, end).join("\n"), fence[2]));
      at = end + 1;
      continue;
    }
    if (rows) {
      flush();
      result.append(table(rows));
      at += rows.length;
      continue;
    }
    if (heading) {
      flush();
      // The page has its own headings: those of an answer come below them.
      result.append(el("p", { class: "heading", role: "heading", "aria-level": "4" }, ...inline(heading[2])));
    } else if (ITEM.test(line)) {
      flush();
      const end = whileMatching(lines, at, ITEM);
      result.append(list(lines.slice(at, end)));
      at = end;
      continue;
    } else if (line.startsWith(">")) {
      flush();
      const end = whileMatching(lines, at, /^>/);
      const quoted = lines.slice(at, end).map((quote) => quote.replace(/^> ?/, ""));
      result.append(el("blockquote", {}, ...withBreaks(quoted)));
      at = end;
      continue;
    } else if (line.trim()) {
      paragraph.push(line);
    } else {
      flush();
    }
    at += 1;
  }
  flush();
  return result;
}

// The lines of a table that begins here: its heads, the line below them, its rows; else nothing.
function tableRows(lines, at) {
  const below = lines[at + 1] ?? "";
  if (!lines[at].includes("|") || !below.includes("-")) return null;
  const marks = cells(below);
  if (marks.length !== cells(lines[at]).length || !marks.every((mark) => MARK.test(mark))) return null;
  return lines.slice(at, whileMatching(lines, at + 2, /\|/));
}

function table([heads, below, ...rows]) {
  const sides = cells(below).map((mark) => mark.endsWith(":") && (mark.startsWith(":") ? "middle" : "right"));
  // No row is filled up: a row has no more cells than it has letters.
  const row = (line, tag) => el("tr", {}, ...cells(line).slice(0, sides.length)
    .map((words, n) => el(tag, { class: sides[n], scope: tag === "th" && "col" }, ...inline(words))));
  // Scrolls on its own, so it must be reached by the keyboard.
  return el("div", { class: "table", tabindex: "0", role: "region", "aria-label": say("page_table") }, el("table", {},
    el("thead", {}, row(heads, "th")), el("tbody", {}, ...rows.map((line) => row(line, "td")))));
}

function cells(line) {
  const parts = line.trim().replaceAll("\\|", "\0").split("|");
  if (parts.length > 1 && !parts[0]) parts.shift();
  if (parts.length > 1 && !parts.at(-1)) parts.pop();
  return parts.map((part) => part.replaceAll("\0", "|").trim());
}

function closing(lines, from, marker) {
  for (let at = from; at < lines.length; at += 1) {
    const line = lines[at].trim();
    if (line.startsWith(marker) && !line.replaceAll("`", "")) return at;
  }
  return lines.length;
}

function whileMatching(lines, from, pattern) {
  let at = from;
  while (at < lines.length && pattern.test(lines[at])) at += 1;
  return at;
}

function list(lines) {
  const first = ITEM.exec(lines[0]);
  const node = first[1] ? el("ol", { start: first[1] }) : el("ul");
  for (const line of lines) node.append(el("li", {}, ...inline(ITEM.exec(line)[2])));
  return node;
}

function code(text, language) {
  const node = el("div", { class: "code" });
  const head = el("div", { class: "code-head" }, el("span", {}, language || say("page_code_of")),
    copyButton(() => text, { class: "quiet small" }));
  // Scrolls on its own, so it must be reached by the keyboard.
  node.append(head, el("pre", { tabindex: "0", role: "region", "aria-label": say("page_code") }, el("code", { "data-language": language || null }, text)));
  return node;
}

function withBreaks(lines) {
  return lines.flatMap((line, number) => (number ? [el("br"), ...inline(line)] : inline(line)));
}

function inline(text) {
  const nodes = [];
  let at = 0;
  for (const match of text.matchAll(INLINE)) {
    nodes.push(text.slice(at, match.index), ...pieces(match));
    at = match.index + match[0].length;
  }
  nodes.push(text.slice(at));
  return nodes.filter((node) => node !== "");
}

function pieces(match) {
  const [whole, code_, bold, italic, label, address] = match;
  if (code_ !== undefined) return [el("code", {}, code_)];
  if (bold !== undefined) return [el("strong", {}, bold)];
  if (italic !== undefined) return [el("em", {}, italic)];
  if (label !== undefined) return [link(address, label) ?? whole];
  const bare = whole.replace(/[.,;:!?)]{1,9}$/, ""); // the end of the sentence is no part of it
  return [link(bare, bare) ?? bare, whole.slice(bare.length)];
}

function link(address, label) {
  let url;
  try {
    url = new URL(address);
  } catch {
    return null;
  }
  if (!["http:", "https:"].includes(url.protocol)) return null;
  const shown = label.replace(TURNS, "");
  const properties = { href: url.href, rel: "noopener noreferrer", target: "_blank", title: url.href };
  return el("a", properties, shown);
}
