// Where a message is typed. A draft stays through a reload, each conversation has its own.

import { find } from "/files/dom.js";

export class Composer {
  #area = find("#words");
  #send = find("#send");
  #stop = find("#stop");
  #key = "";
  #say;

  constructor({ say, stop }) {
    this.#say = say;
    find("#composer").addEventListener("submit", (event) => { event.preventDefault(); this.#submit(); });
    this.#stop.addEventListener("click", stop);
    this.#area.addEventListener("input", () => this.#typed());
    this.#area.addEventListener("keydown", (event) => {
      // On a phone Enter makes a line: there is a button to send.
      const sends = event.key === "Enter" && !event.shiftKey && !event.isComposing;
      if (sends && !matchMedia("(pointer: coarse)").matches) { event.preventDefault(); this.#submit(); }
    });
  }

  open(id) {
    this.#key = `draft ${id}`;
    this.#area.value = sessionStorage.getItem(this.#key) || "";
    this.#typed();
    if (!matchMedia("(pointer: coarse)").matches) this.focus();
  }

  focus() {
    this.#area.focus({ preventScroll: true });
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
    return this.#say(text);
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
