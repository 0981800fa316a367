// SPDX-License-Identifier: Apache-2.0
// A notification of how many answers wait, for who wants it: only while a page of ours is open, unseen.

import { get } from "/files/api.js";
import { find } from "/files/dom.js";

const LOOK_MS = 60_000;

export class Tell {
  #place = find("#tell");
  #button = find("button", this.#place);
  #key = "";
  #words = {};
  #last = 0; // so many waited when the person last saw the page, or was told

  async begin(user) {
    if (!("Notification" in window)) return; // nor has a page that is not at https or this machine
    this.#key = `tells ${user}`;
    if (!(await this.#look(false))) return;
    this.#button.addEventListener("click", () => this.#turn());
    document.addEventListener("visibilitychange", () => this.#on && this.#look(false));
    setInterval(() => this.#on && this.#look(document.hidden), LOOK_MS);
    this.#draw();
    this.#place.hidden = false;
  }

  get #on() {
    return Notification.permission === "granted" && localStorage.getItem(this.#key) === "1";
  }

  async #turn() {
    const wanted = !this.#on;
    if (wanted && (await Notification.requestPermission()) !== "granted") return this.#draw(this.#words.denied);
    if (wanted) localStorage.setItem(this.#key, "1");
    else localStorage.removeItem(this.#key);
    return this.#draw();
  }

  #draw(said = this.#words.what) {
    this.#button.textContent = this.#on ? this.#words.off : this.#words.on;
    find("p", this.#place).textContent = said;
  }

  async #look(tells) {
    const found = await get("/api/waiting").catch(() => null); // it is asked again
    if (!found) return false;
    this.#words = found.words;
    const more = found.count > this.#last;
    this.#last = found.count; // at once: another look may be on its way
    if (tells && more) await this.#show(found.told);
    return true;
  }

  async #show(told) {
    const worker = await navigator.serviceWorker?.getRegistration();
    const how = { tag: "waiting", icon: "/files/icon-192.png" };
    if (worker?.active) return worker.showNotification(told, how);
    return new Notification(told, how); // phones have it by the worker alone
  }
}
