// SPDX-License-Identifier: Apache-2.0
// A message of how many answers wait while no page is open, to this browser, for who wants it: it comes by
// the service of the browser's maker, which cannot read it.

import { post, Problem } from "/files/api.js";
import { find } from "/files/dom.js";

export class Push {
  #place = find("#push");
  #button = find("button", this.#place);
  #manager = null;
  #key = "";
  #words = {};
  #on = false;

  async begin() {
    const found = window.PushManager && window.Notification && (await post("/api/push", { do: "look" }).catch(() => null));
    if (!found?.key) return;
    this.#manager = (await navigator.serviceWorker.ready).pushManager; // never, where there is no worker
    this.#learn(found);
    const mine = await this.#manager.getSubscription();
    if (!this.#on) await mine?.unsubscribe(); // somebody has signed out
    else if (mine?.endpoint !== found.endpoint) await this.#begin().catch(() => this.#end()); // the browser has a new one
    this.#button.addEventListener("click", () => this.#turn());
    this.#draw();
    this.#place.hidden = false;
  }

  async #turn() {
    this.#button.disabled = true;
    let said;
    try {
      said = await (this.#on ? this.#end() : this.#ask());
    } catch (problem) {
      said = problem instanceof Problem ? problem.message : this.#words.failed;
    }
    this.#button.disabled = false;
    this.#draw(said);
  }

  // What is wrong, if anything.
  async #ask() {
    if ((await Notification.requestPermission()) !== "granted") return this.#words.denied;
    await this.#begin();
  }

  async #begin() {
    const mine = await this.#manager.subscribe({ userVisibleOnly: true, applicationServerKey: this.#key });
    try {
      this.#learn(await post("/api/push", { ...mine.toJSON(), do: "on" }));
    } catch (problem) {
      await mine.unsubscribe();
      throw problem;
    }
  }

  // goodbot first: what it sends no more, no browser has to refuse.
  async #end() {
    this.#learn(await post("/api/push", { do: "off" }));
    await (await this.#manager.getSubscription())?.unsubscribe();
  }

  #learn({ key, endpoint, words }) {
    this.#key = key;
    this.#words = words;
    this.#on = Boolean(endpoint);
  }

  #draw(said = this.#words.what) {
    this.#button.textContent = this.#on ? this.#words.off : this.#words.on;
    find("p", this.#place).textContent = said;
  }
}
