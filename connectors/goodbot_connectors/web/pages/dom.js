// SPDX-License-Identifier: Apache-2.0
// Small helpers to build and find elements. Words go in as text, never as HTML.

import { locale } from "/files/texts.js";

export function el(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
  return node;
}

export function button(label, properties = {}, ...children) {
  return el("button", { type: "button", ...properties }, ...children, label);
}

const SETTLED_MS = 500;

// A button that comes where another one was pressed: it is dead at first, for the second half of a
// double click was not meant for it.
export function latecomer(label, properties) {
  const node = button(label, { ...properties, disabled: true });
  setTimeout(() => { node.disabled = false; }, SETTLED_MS);
  return node;
}

// Words, of which those in backticks are to be typed.
export function coded(text) {
  return text.split("`").map((part, at) => (at % 2 ? el("code", {}, part) : part));
}

export function emoji(sign) {
  return el("span", { "aria-hidden": "true", class: "sign" }, sign);
}

export function find(selector, root = document) {
  return root.querySelector(selector);
}

export function randomId() {
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

export function isTyping(target) {
  return target instanceof HTMLElement
    && (target.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName));
}

const clock = new Intl.DateTimeFormat(locale, { hour: "2-digit", minute: "2-digit" });
const day = new Intl.DateTimeFormat(locale, { day: "numeric", month: "short" });

export function when(ms) {
  const date = new Date(ms);
  const today = new Date().toDateString() === date.toDateString();
  return today ? clock.format(date) : day.format(date);
}

// For screen readers: said once, politely.
export function announce(text) {
  const region = find("#announce");
  if (!region) return;
  region.textContent = "";
  setTimeout(() => { region.textContent = text; }, 50);
}
