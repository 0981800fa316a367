// SPDX-License-Identifier: Apache-2.0
// A page of how things are: it looks anew when something happens, and each button is a command of the person's.

import { persistently, signedIn } from "/files/api.js";
import { el, latecomer, randomId, find } from "/files/dom.js";
import { banner, showUser, signedOut } from "/files/header.js";
import { Live } from "/files/live.js";
import { markdown } from "/files/markdown.js";
import { Outbox } from "/files/outbox.js";
import { say } from "/files/texts.js";

const PLACE = "news"; // the conversation in which goodbot speaks unasked: there a training is told to its end
const LOOK_MS = 15_000;
const SOON_MS = 1_000;
const TRAINING_MS = 3_000; // each step of it is told, and a look reads thousands of rated answers

// Whoever extends it has `load()`, which reads and draws, and may have `ready()`, once it is known who this is.
export class Page {
  #seen = {}; // what each part shows, as text: it is drawn anew only when that changes
  #told = new Map(); // by the ids of what was done here: where its answer is shown
  #soon = 0;
  #old = false;

  async run() {
    const waits = (problem) => banner(problem.message);
    const me = await signedIn(waits);
    showUser(me);
    this.user = me.user;
    this.may = new Set(me.commands.map(({ name }) => name));
    this.outbox = new Outbox(me.user, me.now, (problem) => this.#sent(problem));
    this.ready?.();
    await persistently(() => this.load(), waits);
    banner("");
    this.outbox.send(); // what another page of this tab has left
    document.addEventListener("visibilitychange", () => this.look());
    setInterval(() => this.look(), LOOK_MS);
    return new Live({
      frame: (frame) => this.#frame(frame),
      learning: () => this.look(TRAINING_MS),
      stale: () => this.look(),
      state: (open) => banner(open ? "" : say("page_away")),
      signedOut,
    }, me.n).run();
  }

  start() {
    this.run().catch((problem) => (problem.status === 401 ? signedOut() : banner(problem.message)));
  }

  // Once for all that happens within a moment, while somebody can see it.
  look(wait = SOON_MS) {
    if (!document.hidden) this.#soon ||= setTimeout(() => this.#again(), wait);
  }

  async #again() {
    this.#soon = 0;
    try {
      await this.load();
      if (this.#old) banner("");
      this.#old = false;
    } catch (problem) {
      if (problem.status === 401) return signedOut();
      this.#old = true;
      banner(problem.message);
    }
  }

  part(selector, content, draw) {
    const text = JSON.stringify(content);
    if (this.#seen[selector] === text) return;
    this.#seen[selector] = text;
    const part = find(selector);
    const focused = part.contains(document.activeElement) && document.activeElement;
    part.hidden = false;
    draw();
    if (!focused || (document.activeElement === focused && !focused.hidden)) return;
    const stays = focused.isConnected && !focused.hidden;
    (stays ? focused : find("button:not([hidden]), summary", part) || part).focus();
  }

  // A command, or an answer to what one asked back; what it comes to is told in the same part of the page.
  async do(event, from) {
    const place = find(".told", from.closest("section, li"));
    const id = randomId();
    this.#told.set(id, place);
    if (place.contains(from)) place.focus(); // the button that was pressed goes
    place.replaceChildren(el("p", { class: "count waiting" }, say("page_moment")));
    try {
      const { outcome, text } = await this.outbox.add({ id, in: PLACE, ...event });
      if (outcome !== "accepted") tell(place, text);
    } catch (problem) {
      tell(place, problem.message);
    }
  }

  #frame(frame) {
    // A training that ends within a second is told by its news alone; and what is rated elsewhere counts here.
    if ((frame.entry && frame.in === PLACE) || frame.counted) this.look();
    const place = "receipt" in frame && this.#told.get(frame.of);
    if (!place) return;
    tell(place, frame.receipt, frame.offer.map((one) => latecomer(one.label, {
      class: "chip small", onclick: ({ target }) => this.do({ press: one.action }, target),
    })));
    this.look();
  }

  #sent(problem) {
    if (problem?.status === 401) return signedOut();
    return banner(problem ? problem.message : "");
  }
}

function tell(place, text, choices = []) {
  if (!text) return place.replaceChildren();
  return place.replaceChildren(el("div", { class: "words" }, markdown(text)), choices.length ? el("div", { class: "row" }, ...choices) : "");
}
