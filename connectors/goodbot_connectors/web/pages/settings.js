// SPDX-License-Identifier: Apache-2.0
// All that can be set, with what it is for; what gives somebody power is changed here with a code from the bot's machine.

import { get, post } from "/files/api.js";
import { copyButton } from "/files/copy.js";
import { button, coded, el, find } from "/files/dom.js";
import { signedOut } from "/files/header.js";
import { Page } from "/files/page.js";
import { listed, say } from "/files/texts.js";

const SECTIONS = {
  model: "page_section_model", serving: "page_answers_head", "serving.sampling": "page_section_words", "serving.settings": "page_section_server",
  training: "page_section_when", "training.settings": "page_section_how", judge: "page_section_judge", adapters: "page_versions",
  privacy: "page_section_privacy", http: "page_section_http", log: "page_section_log", plugins: "page_section_plugins",
};
const AGAIN_MS = 1_000;
const sectionOf = (key) => key.slice(0, key.lastIndexOf("."));
const titleOf = (section) => (Object.hasOwn(SECTIONS, section) ? say(SECTIONS[section]) : "");
const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);
const SHOWN = { open: (one) => !one.why_not, written: (one) => one.written, waits: (one) => !same(one.value, one.now) };

class Settings extends Page {
  #form = find("#filters");
  #settings = null;
  #started = 0; // when the goodbot began that this page is of

  ready() {
    this.#form.addEventListener("input", () => this.#narrow());
    this.#form.addEventListener("submit", (event) => event.preventDefault());
    find("#restart").addEventListener("click", () => this.#restart());
    const given = new URLSearchParams(location.search);
    for (const name of ["text", "which"]) this.#form.elements[name].value = given.get(name) || "";
  }

  // What is open or typed stays: the page looks anew when it is loaded anew, or something was changed.
  async load() {
    if (!this.may.has("adapters")) return find("#count").replaceChildren(say("page_settings_owners"));
    if (this.#settings) return undefined;
    const found = await get("/api/settings");
    find("#file").replaceChildren(...coded(say("page_settings_file", { file: found.file })));
    find("#file").hidden = false;
    find("#places").hidden = !found.places.length;
    find("#places").replaceChildren(connected(found.places));
    this.#take(found);
    find("#sections").replaceChildren(...grouped(found.settings).map(([name, settings]) => el("details", { class: "section" },
      el("summary", {}, el("h2", {}, titleOf(name) || name), el("code", {}, `[${name}]`)), el("ul", {}, ...settings.map((one) => this.#row(one))))));
    return this.#narrow();
  }

  // Another goodbot takes over within a moment: until it answers, this page waits for it.
  async #restart() {
    const told = find("#restarted");
    find("#restart").disabled = true;
    try {
      told.textContent = (await post("/api/settings", { do: "restart" })).told;
      told.focus();
      this.#wait(this.#started);
    } catch (problem) {
      if (problem.status === 401) return signedOut();
      find("#restart").disabled = false;
      told.textContent = problem.message;
      told.focus();
    }
    return undefined;
  }

  // `before`: when the goodbot began that was asked; a change meanwhile may be answered by the next one.
  #wait(before) {
    setTimeout(async () => {
      try {
        const { started_at: started } = await get("/api/settings");
        if (started !== before) return location.reload();
      } catch (problem) {
        if (problem.status === 401) return signedOut();
      }
      return this.#wait(before);
    }, AGAIN_MS);
  }

  #take({ settings, trouble, started_at: started }) {
    this.#settings = new Map(settings.map((one) => [one.key, one]));
    this.#started = started;
    find("#again").hidden = settings.every((one) => same(one.value, one.now));
    find("#trouble").hidden = !trouble;
    find("#trouble").replaceChildren(...(trouble ? [say("page_settings_trouble"), " ", trouble] : []));
  }

  #narrow() {
    const { text, which } = this.#form.elements;
    const words = text.value.trim().toLowerCase().split(/\s+/);
    const shows = (one) => words.every((word) => `${one.key} ${titleOf(sectionOf(one.key))} ${one.told}`.toLowerCase().includes(word))
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
    find("#count").textContent = count ? say("page_settings_count", { count }) : say("page_no_setting");
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
        el("div", {}, el("h3", {}, name), el("p", {}, ...coded(one.told)),
          el("p", { class: "value" }, one.secret ? "••••••" : said(one.value)),
          el("p", { class: "meta" }, one.secret ? "" : el("span", {}, same(one.value, one.default) ? say("page_the_default") : say("page_default_is", { value: said(one.default) })),
            one.why_not ? el("span", {}, ...coded(one.why_not)) : ""),
          same(one.value, one.now) ? "" : el("p", { class: "waits" }, say("page_until_start", { value: said(one.now) }))),
        one.why_not && !one.typed ? "" : button(say("page_change"), { class: "chip small", "aria-label": say("page_change_what", { name }), onclick: () => this.#edit(row, one) })),
      el("p", { class: "told", role: "status", tabindex: "-1" }, told));
  }

  #edit(row, one) {
    const field = fieldFor(one);
    const code = one.typed && el("input", { autocomplete: "off", autocapitalize: "none", spellcheck: "false", maxlength: "64", required: true });
    const place = el("p", { class: "told error", role: "alert" });
    const away = () => { this.#draw(row, this.#settings.get(one.key)); find("button", row)?.focus(); };
    const send = async (body) => {
      place.textContent = "";
      try {
        const found = await post("/api/settings", { key: one.key, before: one.value, ...(code ? { code: code.value } : {}), ...body });
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
      if (value === null) place.textContent = say("page_write_digits");
      else send({ do: "set", value });
    };
    const form = el("form", { class: "words", onsubmit: submit, onkeydown: (event) => event.key === "Escape" && away() }, field, ...(code ? allowed(one, code) : []), place,
      el("div", { class: "row" }, el("button", { class: "primary small", type: "submit" }, say("page_save")),
        one.written ? button(say("page_back_default"), { class: "chip small", onclick: () => send({ do: "default" }) }) : "",
        button(say("page_cancel"), { class: "quiet small", onclick: away })));
    find("button", row).hidden = true;
    find(".told", row).replaceWith(form);
    field.focus();
  }
}

// Where people talk to the bot, and what is typed for another place: no browser but one at its machine connects it.
function connected(places) {
  const here = listed(...places.filter((one) => one.connected).map((one) => one.title));
  const row = (one) => el("li", { class: "place" }, el("h3", {}, one.title),
    one.connected
      ? el("p", {}, ...coded(say(one.works ? "page_connected" : "page_connected_ill")))
      : el("div", { class: "command" }, el("code", {}, one.command), copyButton(() => one.command, { class: "chip small", "aria-label": say("page_copy_command", { place: one.title }) })));
  return el("details", { class: "places" }, el("summary", {}, el("h2", {}, say("page_where_talk")), el("span", { class: "meta" }, here)),
    el("p", { class: "about" }, say("page_another_place")),
    el("ul", {}, ...places.map(row)));
}

// What decides who may do what, what is run or where words go needs somebody at the bot's machine.
function allowed(one, field) {
  return [
    el("p", { class: "count" }, say("page_code_type")),
    el("div", { class: "command" }, el("code", {}, one.typed), copyButton(() => one.typed, { class: "chip small", "aria-label": say("page_copy_command", { place: one.key }) })),
    el("label", {}, el("span", { class: "label" }, say("page_code_from")), field)];
}

function grouped(settings) {
  const sections = new Map();
  for (const one of settings) sections.set(sectionOf(one.key), [...(sections.get(sectionOf(one.key)) || []), one]);
  return [...sections];
}

function fieldFor(one) {
  const about = { "aria-label": one.key };
  const options = { switch: ["true", "false"], choice: one.choices }[one.kind];
  const value = one.value ?? one.default; // of what is not switched on: as it would be
  if (options) {
    const field = el("select", about, ...options.map((option) => el("option", { value: option }, one.kind === "switch" ? said(option === "true") : option)));
    field.value = String(value);
    return field;
  }
  if (one.kind === "whole" || one.kind === "number") return el("input", { ...about, type: "text", inputmode: "decimal", value: value ?? "" });
  if (one.kind === "text" && !/prompt/.test(one.key)) return el("input", { ...about, value: value ?? "", autocapitalize: "none" });
  const field = el("textarea", { ...about, rows: "5", ...(one.kind === "texts" ? { placeholder: say("page_one_a_line") } : {}) });
  field.value = one.kind === "texts" ? (value ?? []).join("\n") : value ?? "";
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
  if (value === null || value === undefined) return say("page_not_set");
  if (typeof value === "boolean") return say(value ? "page_set_on" : "page_set_off");
  if (Array.isArray(value)) return value.join(", ") || say("page_set_none");
  return value === "" ? say("page_set_empty") : String(value);
}

new Settings().start();
