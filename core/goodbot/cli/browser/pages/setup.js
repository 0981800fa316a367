// SPDX-License-Identifier: Apache-2.0
// The wizard on a page. goodbot says what is asked; this draws it and sends what is answered. The code in the
// address is good once: from then on this tab has a key, which no other page of this browser can read.

import { qr, sketch } from "/files/sketch.js";

const KEY = "goodbot setup";
const LOOK_MS = 350;
const LOST = 6; // looks without an answer after which it is said

const find = (selector) => document.querySelector(selector);
const pause = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });

let words = {};
let key = "";
let shown = -1; // the number of what the page shows
let step = -1;

function el(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === false || value === "") continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.filter((child) => child !== ""));
  return node;
}

const fill = (text, values) => text.replace(/\{(\w+)\}/g, (_, name) => values[name] ?? "");

// Words with what stands in backticks: in a button there is no link.
const coded = (text) => text.split(/(`[^`]*`)/).map((part) => (/^`.*`$/.test(part) ? el("code", {}, part.slice(1, -1)) : part));

// The same, with their addresses.
const marked = (text) => coded(text).flatMap((part) => (typeof part !== "string" ? [part]
  : part.split(/(https:\/\/[^\s`]*[^\s`.,;:)])/).map((piece) => (piece.startsWith("https://") ? outside(piece) : piece))));

const LONG = 80; // signs of an address; one with a whole manifest in it has thousands

function outside(address) {
  const shown = address.length > LONG ? `${address.slice(0, LONG)}…` : address;
  if (!/^https?:\/\//.test(address)) return el("code", {}, address); // a plugin can name any
  return el("a", { href: address, target: "_blank", rel: "noopener noreferrer" }, shown);
}

async function ask(path, body) {
  const headers = { ...(key && { Authorization: `Bearer ${key}` }), ...(body && { "Content-Type": "application/json" }) };
  const response = await fetch(path, { method: body ? "POST" : "GET", headers, body: body && JSON.stringify(body), cache: "no-store" });
  return { status: response.status, found: await response.json() };
}

// What is said

const ROW = /^ {2,}(\S+(?: \S+)*) {2,}(\S.*)$/; // of what a terminal shows in two columns

function said(text) {
  const nodes = [];
  let rows = [];
  const flush = () => { if (rows.length) nodes.push(table(rows)); rows = []; };
  for (const line of text.split("\n")) {
    const row = ROW.exec(line);
    if (row) rows.push([row[1], row[2]]);
    else if (line.trim()) { flush(); nodes.push(el("p", {}, ...marked(line.trim()))); }
  }
  flush();
  return nodes;
}

const table = (rows) => el("dl", { class: "rows" }, ...rows.map(([name, what]) => el("div", {}, el("dt", {}, name), el("dd", {}, ...marked(what)))));

function copyable(text) {
  const done = el("span", { class: "hint", role: "status" });
  const copy = async () => {
    try { await navigator.clipboard.writeText(text); done.textContent = words.copied; } catch { getSelection().selectAllChildren(pre); }
  };
  const pre = el("pre", { tabindex: "0" }, text);
  return el("div", { class: "copy" }, pre, el("div", { class: "row" }, el("button", { type: "button", class: "chip", onclick: copy }, words.copy), done));
}

function guide({ lines, sketches }) {
  const numbered = lines.filter((line) => /^\d+\. /.test(line));
  const rest = lines.filter((line) => !/^\d+\. /.test(line));
  const picture = (one) => sketch(one, fill(words.drawing, { what: [one.here, one.field, one.press].filter(Boolean).join(", "), address: one.address }));
  const steps = numbered.map((line, at) => el("li", {}, ...marked(line.replace(/^\d+\. /, "")), ...sketches.filter((one) => one.line === at + 1).map(picture)));
  return [steps.length ? el("ol", { class: "guide" }, ...steps) : "", rest.length ? el("p", {}, ...marked(rest.join(" "))) : ""].filter(Boolean);
}

const DRAWN = {
  text: (one) => said(one.text),
  rows: (one) => [table(one.rows)],
  copy: (one) => [copyable(one.text)],
  link: (one) => [el("div", {}, el("p", {}, ...marked(one.text)), outside(one.address), one.picture.length ? qr(one.picture, words.qr) : "")],
  guide,
};

// What is asked

function send(number, act, value = "") {
  find("#asked").hidden = true;
  find("#ways").hidden = true;
  working(words.working);
  const again = () => { shown = -1; }; // it was not taken: the next look asks as before
  return ask("/api/answer", { number, do: act, value }).then(({ status }) => { if (status !== 200) again(); }, again);
}

function choices(asked) {
  const pressed = (at) => send(asked.number, "answer", String(at + 1));
  return el("ul", { class: "choices" }, ...asked.choices.map((one, at) => [one, at]).filter(([one]) => !one.typed).map(([one, at]) => el("li", {},
    el("button", { type: "button", class: String(at + 1) === asked.default ? "default" : "", onclick: () => pressed(at) },
      el("span", { class: "label" }, one.label), one.note ? el("span", { class: "note" }, ...coded(one.note)) : ""))));
}

function field(asked) {
  const typed = asked.choices.find((one) => one.typed);
  const hidden = asked.kind === "secret";
  const label = typed ? typed.label : asked.choices.length ? words.typed : asked.text;
  const button = asked.choices.length && /^\d+$/.test(asked.default); // what is proposed has one
  const value = button || hidden ? "" : asked.default;
  const input = el("input", { name: "value", type: hidden ? "password" : "text", value, autocomplete: "off", autocapitalize: "none", spellcheck: "false", maxlength: "5000" });
  return [el("label", {}, el("span", {}, label), input), hidden ? el("p", { class: "hint" }, words.hidden) : "",
    el("div", { class: "row" }, el("button", { type: "submit", class: asked.choices.length ? "chip" : "primary" }, words.continue))].filter(Boolean);
}

function draw(asked) {
  const form = find("#asked");
  form.hidden = !asked;
  find("#ways").hidden = !asked;
  if (!asked) return form.replaceChildren();
  form.onsubmit = (event) => {
    event.preventDefault();
    const input = form.elements.value;
    const given = input.value;
    if (!given.trim() && asked.choices.length) return input.focus();
    input.value = ""; // a token stays nowhere
    return send(asked.number, "answer", given);
  };
  const answer = (value) => el("button", { type: "button", class: value === asked.default ? "primary" : "chip", onclick: () => send(asked.number, "answer", value) }, value === "yes" ? words.yes : words.no);
  if (asked.kind === "confirm") form.replaceChildren(el("p", {}, ...marked(asked.text)), el("div", { class: "row" }, answer("yes"), answer("no")));
  else form.replaceChildren(asked.choices.length ? choices(asked) : "", ...(asked.typed || !asked.choices.length ? field(asked) : []));
  ways(asked);
  return undefined;
}

function ways(asked) {
  const quiet = (label, act) => el("button", { type: "button", class: "quiet", onclick: act }, label);
  const place = find("#ways");
  const usual = () => place.replaceChildren(quiet(words.back, () => send(asked.number, "back")), quiet(words.leave, sure));
  const sure = () => {
    place.replaceChildren(el("p", {}, words.sure), quiet(words.leave, () => send(asked.number, "leave")), quiet(words.stay, () => { usual(); place.lastChild.focus(); }));
    place.lastChild.focus();
  };
  usual();
}

// The page

function working(text) {
  find("#working").hidden = !text;
  find("#working").textContent = text;
}

function show(screen) {
  const begun = screen.step !== step;
  step = screen.step;
  find("#count").hidden = find("#bar").hidden = !screen.step || Boolean(screen.end);
  find("#count").textContent = fill(words.step, { number: screen.step, of: screen.of });
  find("#bar").value = screen.of ? screen.step / screen.of : 0;
  find("#title").textContent = screen.end ? words[screen.end] : screen.title || words.title;
  const rest = screen.said.filter((one) => one.kind !== "trouble");
  find("#said").replaceChildren(...rest.flatMap((one) => DRAWN[one.kind](one)));
  find("#troubles").replaceChildren(...screen.said.filter((one) => one.kind === "trouble").map((one) => el("p", { class: "trouble" }, ...marked(one.text))));
  working(screen.asked || screen.end ? "" : screen.working || words.working);
  draw(screen.asked);
  const first = find("#asked .default, #asked input, #asked .primary");
  if (screen.end || begun || !screen.asked) find("#title").focus();
  else first?.focus();
}

async function look() {
  let lost = 0;
  for (;;) {
    try {
      const { status, found } = await ask("/api/screen");
      if (status === 401) return refuse(words.lost);
      lost = 0;
      if (found.number !== shown) show(found);
      shown = found.number;
      if (found.end) return keep("");
    } catch {
      lost += 1;
      if (lost === LOST) { // whoever listens at this port next is somebody else: nothing more is asked there
        draw(null);
        working("");
        return refuse(words.lost);
      }
    }
    await pause(LOOK_MS);
  }
}

const refuse = (text) => find("#troubles").replaceChildren(el("p", { class: "trouble" }, text));

// What this tab keeps for itself; where its person lets no page keep anything, it only cannot be loaded again.
function keep(what) {
  try {
    if (what === undefined) return sessionStorage.getItem(KEY);
    return sessionStorage.setItem(KEY, what);
  } catch { return ""; }
}

async function begin() {
  const kept = JSON.parse(keep() || "null");
  const code = location.hash.slice(1);
  history.replaceState(null, "", "/"); // out of the address bar and the history
  let got = kept;
  if (code) {
    const { status, found } = await ask("/api/begin", { code });
    if (status === 200) got = found;
    else if (!kept) return refuse(found.error);
  }
  if (!got) return refuse("This page belongs to goodbot's setup: `goodbot --browser` opens it.");
  keep(JSON.stringify(got)); // so that the page can be loaded again
  ({ key, words } = got);
  document.documentElement.lang = got.language;
  document.title = `${words.title} · goodbot`;
  return look();
}

addEventListener("hashchange", () => location.reload()); // a link that is opened in this tab loads nothing anew
begin().catch(() => refuse("goodbot does not answer."));
