// SPDX-License-Identifier: Apache-2.0
// All that can be set, with what it is for; what gives nobody power can be changed here.

import { get, post } from "/files/api.js";
import { copyButton } from "/files/copy.js";
import { button, el, find } from "/files/dom.js";
import { signedOut } from "/files/header.js";
import { Page } from "/files/page.js";

const SECTIONS = {
  model: "Model", serving: "Answers", "serving.sampling": "How words are chosen", "serving.settings": "The model server", training: "When it learns",
  "training.settings": "How it learns", judge: "Answers that nobody rated", adapters: "Versions", privacy: "Privacy", http: "Where it listens", log: "Log", plugins: "Plugins",
};
const sectionOf = (key) => key.slice(0, key.lastIndexOf("."));
const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);
const SHOWN = { open: (one) => !one.why_not, written: (one) => one.written, waits: (one) => !same(one.value, one.now) };

class Settings extends Page {
  #form = find("#filters");
  #settings = null;

  ready() {
    this.#form.addEventListener("input", () => this.#narrow());
    this.#form.addEventListener("submit", (event) => event.preventDefault());
    const given = new URLSearchParams(location.search);
    for (const name of ["text", "which"]) this.#form.elements[name].value = given.get(name) || "";
  }

  // What is open or typed stays: the page looks anew when it is loaded anew, or something was changed.
  async load() {
    if (!this.may.has("adapters")) return find("#count").replaceChildren("Owners of this bot see its settings here.");
    if (this.#settings) return undefined;
    const found = await get("/api/settings");
    find("#file code").textContent = found.file;
    find("#file").hidden = false;
    find("#places").hidden = !found.places.length;
    find("#places").replaceChildren(connected(found.places));
    this.#take(found);
    find("#sections").replaceChildren(...grouped(found.settings).map(([name, settings]) => el("details", { class: "section" },
      el("summary", {}, el("h2", {}, SECTIONS[name] || name), el("code", {}, `[${name}]`)), el("ul", {}, ...settings.map((one) => this.#row(one))))));
    return this.#narrow();
  }

  #take({ settings, trouble }) {
    this.#settings = new Map(settings.map((one) => [one.key, one]));
    find("#trouble").hidden = !trouble;
    find("#trouble").textContent = trouble && `goodbot would not start with the file as it is now: ${trouble}`;
  }

  #narrow() {
    const { text, which } = this.#form.elements;
    const words = text.value.trim().toLowerCase().split(/\s+/);
    const shows = (one) => words.every((word) => `${one.key} ${SECTIONS[sectionOf(one.key)] || ""} ${one.told}`.toLowerCase().includes(word))
      && (!which.value || SHOWN[which.value](one));
    let count = 0;
    for (const section of document.querySelectorAll(".section")) {
      let here = 0;
      for (const row of section.querySelectorAll(".setting")) {
        row.hidden = !shows(this.#settings.get(row.dataset.key));
        here += row.hidden ? 0 : 1;
      }
      section.hidden = !here;
      section.open = here > 0 && Boolean(text.value.trim() || which.value);
      count += here;
    }
    find("#count").textContent = count ? `${count} ${count === 1 ? "setting" : "settings"}` : "No setting matches.";
    const kept = new URLSearchParams([...["text", "which"].map((name) => [name, this.#form.elements[name].value])].filter(([, value]) => value));
    history.replaceState(null, "", kept.size ? `?${kept}` : location.pathname);
  }

  #row(one) {
    const row = el("li", { class: "setting", "data-key": one.key });
    this.#draw(row, one);
    return row;
  }

  #draw(row, one, told = "") {
    const name = one.key.slice(one.key.lastIndexOf(".") + 1);
    row.replaceChildren(
      el("div", { class: "line" },
        el("div", {}, el("h3", {}, name), el("p", {}, ...words(one.told)),
          el("p", { class: "value" }, one.secret ? "••••••" : said(one.value)),
          el("p", { class: "meta" }, one.secret ? "" : el("span", {}, same(one.value, one.default) ? "the default" : `default: ${said(one.default)}`),
            one.why_not ? el("span", {}, ...words(one.why_not)) : ""),
          same(one.value, one.now) ? "" : el("p", { class: "waits" }, `Until the next start of goodbot: ${said(one.now)}`)),
        one.why_not ? "" : button("Change", { class: "chip small", "aria-label": `Change ${name}`, onclick: () => this.#edit(row, one) })),
      el("p", { class: "told", role: "status", tabindex: "-1" }, told));
  }

  #edit(row, one) {
    const field = fieldFor(one);
    const place = el("p", { class: "told error", role: "alert" });
    const away = () => { this.#draw(row, this.#settings.get(one.key)); find("button", row)?.focus(); };
    const send = async (body) => {
      place.textContent = "";
      try {
        const found = await post("/api/settings", { key: one.key, before: one.value, ...body });
        this.#take(found);
        this.#draw(row, this.#settings.get(one.key), found.told);
        find(".told", row).focus();
      } catch (problem) {
        if (problem.status === 401) signedOut();
        else place.textContent = problem.message;
      }
    };
    const submit = (event) => {
      event.preventDefault();
      const value = valueOf(one, field);
      if (value === null) place.textContent = "Write a number in digits alone, such as 1000 or 0.5.";
      else send({ do: "set", value });
    };
    const form = el("form", { class: "words", onsubmit: submit, onkeydown: (event) => event.key === "Escape" && away() }, field, place,
      el("div", { class: "row" }, el("button", { class: "primary small", type: "submit" }, "Save"),
        one.written ? button("Back to the default", { class: "chip small", onclick: () => send({ do: "default" }) }) : "",
        button("Cancel", { class: "quiet small", onclick: away })));
    find("button", row).hidden = true;
    find(".told", row).replaceWith(form);
    field.focus();
  }
}

// Where people talk to the bot, and what is typed for another place: no browser but one at its machine connects it.
function connected(places) {
  const here = places.filter((one) => one.connected).map((one) => one.title).join(", ");
  const row = (one) => el("li", { class: "place" }, el("h3", {}, one.title),
    one.connected
      ? el("p", {}, ...words(one.works ? "Connected." : "Connected, and does not work now: `goodbot doctor` says why."))
      : el("div", { class: "command" }, el("code", {}, one.command), copyButton(() => one.command, { class: "chip small", "aria-label": `Copy the command for ${one.title}` })));
  return el("details", { class: "places" }, el("summary", {}, el("h2", {}, "Where people talk to it"), el("span", { class: "meta" }, here)),
    el("p", { class: "about" }, "For another place, type its command at the bot's machine. It asks all that is needed, on a page in the browser there. Then restart goodbot."),
    el("ul", {}, ...places.map(row)));
}

function grouped(settings) {
  const sections = new Map();
  for (const one of settings) sections.set(sectionOf(one.key), [...(sections.get(sectionOf(one.key)) || []), one]);
  return [...sections];
}

function fieldFor(one) {
  const about = { "aria-label": one.key };
  const options = { switch: ["true", "false"], choice: one.choices }[one.kind];
  if (options) {
    const field = el("select", about, ...options.map((value) => el("option", { value }, { true: "on", false: "off" }[value] || value)));
    field.value = String(one.value);
    return field;
  }
  if (one.kind === "whole" || one.kind === "number") return el("input", { ...about, type: "text", inputmode: "decimal", value: one.value ?? "" });
  if (one.kind === "text" && !/prompt/.test(one.key)) return el("input", { ...about, value: one.value ?? "", autocapitalize: "none" });
  const field = el("textarea", { ...about, rows: "5", ...(one.kind === "texts" ? { placeholder: "one a line" } : {}) });
  field.value = one.kind === "texts" ? one.value.join("\n") : one.value ?? "";
  return field;
}

const THOUSANDS = /^[+-]?\d{1,3}([,.]\d{3})+$/; // in one language 1000, in another 1: neither is written

// What a field says, as the file has it; null where it is no number, or could be two.
function valueOf(one, { value }) {
  if (one.kind === "switch") return value === "true";
  if (one.kind === "texts") return value.split("\n").map((line) => line.trim()).filter(Boolean);
  if (one.kind !== "whole" && one.kind !== "number") return value;
  const typed = value.trim();
  if (THOUSANDS.test(typed) && (one.kind === "whole" || typed.includes(","))) return null;
  const number = Number(typed.replace(",", "."));
  return typed && Number.isFinite(number) ? number : null;
}

function said(value) {
  if (value === null || value === undefined) return "not set";
  if (typeof value === "boolean") return value ? "on" : "off";
  if (Array.isArray(value)) return value.join(", ") || "none";
  return value === "" ? "empty" : String(value);
}

// Text, with what stands in backticks as code.
function words(text) {
  return text.split("`").map((part, n) => (n % 2 ? el("code", {}, part) : part));
}

new Settings().start();
