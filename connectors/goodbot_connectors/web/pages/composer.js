// SPDX-License-Identifier: Apache-2.0
// Where a message is typed. A draft stays through a reload, each conversation has its own.

import { find } from "/files/dom.js";
import { Palette } from "/files/palette.js";

function onPhone() {
  return matchMedia("(pointer: coarse)").matches;
}

export class Composer {
  #area = find("#words");
  #send = find("#send");
  #stop = find("#stop");
  #palette = new Palette(this.#area);
  #key = "";
  #say;

  constructor({ say, stop, asked, commands }) {
    this.#say = say;
    this.#palette.offer(commands);
    find("#composer").addEventListener("submit", (event) => { event.preventDefault(); this.#submit(); });
    this.#stop.addEventListener("click", () => { stop(); this.#goOn(); });
    this.#area.addEventListener("input", () => this.#typed());
    this.#area.addEventListener("keydown", (event) => {
      if (this.#palette.takes(event)) return;
      if (event.key === "ArrowUp" && !this.#area.value && asked()) { event.preventDefault(); this.edit(asked()); }
      // On a phone Enter makes a line: there is a button to send.
      const sends = event.key === "Enter" && !event.shiftKey && !event.isComposing && event.keyCode !== 229;
      if (sends && !onPhone()) { event.preventDefault(); this.#submit(); }
    });
  }

  open(id) {
    if (this.#key === `draft ${id}`) return; // read anew: whoever writes goes on
    const early = this.#key ? "" : this.#area.value; // typed before the page was ready
    this.#key = `draft ${id}`;
    this.#area.value = early || sessionStorage.getItem(this.#key) || "";
    this.#typed();
    this.#goOn();
  }

  focus() {
    this.#area.focus({ preventScroll: true });
  }

  // What was asked, to be changed and sent again; in front of what is being written.
  edit(text) {
    this.#area.value = [text, this.#area.value].filter(Boolean).join("\n");
    this.#typed();
    this.focus();
    this.#area.setSelectionRange(text.length, text.length);
  }

  putBack(text) {
    if (!this.#area.value) this.#area.value = text;
    this.#typed();
  }

  busy(on) {
    this.#stop.hidden = !on;
  }

  #submit() {
    const text = this.#area.value.trim();
    if (!text) return this.focus();
    this.#area.value = "";
    this.#typed();
    this.#goOn(); // else the letters of the next message would be keys that rate
    return this.#say(text);
  }

  // Ready for the next words, unless a keyboard would cover half of a phone.
  #goOn() {
    if (!onPhone()) this.focus();
  }

  #typed() {
    this.#send.disabled = !this.#area.value.trim();
    this.#area.style.height = "auto";
    this.#area.style.height = `${Math.min(this.#area.scrollHeight, innerHeight * 0.4)}px`;
    try {
      if (this.#area.value) sessionStorage.setItem(this.#key, this.#area.value);
      else sessionStorage.removeItem(this.#key);
    } catch {
      // Without storage a draft does not survive a reload, that is all.
    }
  }
}
