// SPDX-License-Identifier: Apache-2.0
// What all signed-in pages have at the top: the other pages, who this is, signing out, and a line about the connection.

import { post } from "/files/api.js";
import { announce, button, coded, el, find } from "/files/dom.js";
import "/files/install.js";
import "/files/nofiles.js";
import { say } from "/files/texts.js";

// `me` is what `/api/me` says.
export function showUser(me) {
  const name = find("#user");
  name.textContent = me.user;
  name.title = say("page_signed_in", { user: me.user });
  name.before(themeSwitch());
  const may = { talks: true, rates: me.rates, owns: me.commands.some(({ name }) => name === "adapters") };
  document.body.classList.toggle("talker", !may.rates); // nothing is shown of what would be refused
  document.body.classList.toggle("owner", may.owns);
  showPages(may);
  const out = find("#sign-out");
  out.hidden = false;
  out.addEventListener("click", async () => {
    try {
      await post("/api/logout");
    } catch {
      return banner(say("page_not_out"));
    }
    sessionStorage.clear();
    return location.assign("/login");
  });
}

// Path, the key of its name, and who sees it. The first few stand in the header, the others in the menu “More”.
const PAGES = [["/", "page_chat", "talks"], ["/rate", "page_to_rate", "rates"], ["/progress", "page_progress", "talks"],
  ["/versions", "page_versions", "owns"]];
const MORE = [["/ratings", "page_rated_answers", "rates"], ["/people", "page_people", "owns"], ["/notes", "page_notes", "rates"],
  ["/report", "page_report", "owns"], ["/activity", "page_activity", "owns"], ["/settings", "page_settings", "owns"]];

function showPages(may) {
  const links = (pages) => pages.filter(([, , who]) => may[who]).map(([path, name]) => (
    el("a", { href: path, "aria-current": path === location.pathname && "page" }, say(name))));
  const more = links(MORE);
  find(".top nav").replaceChildren(...links(PAGES), more.length ? menu(more) : "");
}

function menu(links) {
  const list = el("ul", { id: "more-pages", hidden: true }, ...links.map((link) => el("li", {}, link)));
  const here = links.some((link) => link.hasAttribute("aria-current"));
  const opener = button(say("page_more"), { class: here && "here", "aria-label": say("page_more_pages"), "aria-expanded": "false", "aria-controls": list.id });
  const open = (on) => {
    list.hidden = !on;
    opener.setAttribute("aria-expanded", String(on));
  };
  const place = el("div", { class: "more-pages" }, opener, list);
  opener.addEventListener("click", () => open(list.hidden));
  place.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || list.hidden) return;
    event.stopPropagation(); // it closes this, and stops no answer
    open(false);
    opener.focus();
  });
  for (const leaves of ["pointerdown", "focusin"]) {
    document.addEventListener(leaves, ({ target }) => place.contains(target) || open(false));
  }
  return place;
}

// Light, dark, or as the system has it (`theme.js`).
const THEMES = [["auto", "◐", "page_colours_auto"], ["light", "☀", "page_colours_light"], ["dark", "☾", "page_colours_dark"]];

function themeSwitch() {
  const sign = el("span", { "aria-hidden": "true" });
  const node = button("", { class: "quiet icon" }, sign);
  let at = THEMES.findIndex(([name]) => name === document.documentElement.dataset.chosen);
  const show = () => {
    sign.textContent = THEMES[at][1];
    node.title = say(THEMES[at][2]);
    node.setAttribute("aria-label", node.title);
  };
  node.addEventListener("click", () => {
    at = (at + 1) % THEMES.length;
    localStorage.setItem("theme", THEMES[at][0]);
    dispatchEvent(new Event("storage")); // the browser tells it to other tabs only
    show();
    announce(node.title);
  });
  show();
  return node;
}

// A sentence about the connection, or none.
export function banner(text) {
  const place = find("#banner");
  if (place.textContent === text) return;
  place.textContent = text;
  place.hidden = !text;
}

// What a training does now: `learning: 12/32, 2 min left`; empty while there is none.
export function showLearning(text) {
  const place = find("#learning");
  place.hidden = !text;
  place.textContent = text;
  place.title = text ? say("page_training", { what: text }) : "";
}

export function signedOut() {
  const before = Boolean(find("#user").textContent); // else nobody has been here
  leave(say(before ? "page_are_out" : "page_sign_in_first"),
    before ? el("p", {}, say("page_kept_here")) : null,
    el("p", {}, ...coded(say("page_get_link"))),
    el("p", {}, el("a", { class: "primary as-button", href: "/login" }, say("page_have_link"))));
}

// All that was stored of somebody is deleted, by their own word or an owner's.
export function forgotten() {
  sessionStorage.clear();
  for (const key of Object.keys(localStorage).filter((one) => /^(?:views|tells) /.test(one))) localStorage.removeItem(key);
  leave(say("page_forgotten"),
    el("p", {}, say("page_forgotten_what")),
    el("p", {}, say("page_forgotten_backups")));
}

function leave(heading, ...words) {
  banner("");
  showLearning("");
  find("#user").textContent = "";
  find("#sign-out").hidden = true;
  const panel = el("section", { class: "panel", "aria-labelledby": "out" },
    el("h1", { id: "out", tabindex: "-1" }, heading), ...words);
  find("main").replaceChildren(panel);
  document.body.classList.add("out");
  find("#out").focus();
}

// How far the next training is, as it was last told in this tab: { words, have, need }.
const TOLD_MS = 2 * 60 * 1000; // then a training may have taken them

export function remember(counted) {
  if (counted) sessionStorage.setItem("counted", JSON.stringify({ ...counted, at: Date.now() }));
}

export function progress() {
  const told = JSON.parse(sessionStorage.getItem("counted") || "{}");
  return Date.now() - told.at < TOLD_MS && told;
}
