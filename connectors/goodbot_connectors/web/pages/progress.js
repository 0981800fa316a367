// SPDX-License-Identifier: Apache-2.0
// How far learning is. What is shown is what goodbot tells this person; each button is a command of theirs.

import { get, persistently, signedIn } from "/files/api.js";
import { percent, ring, shares, sharesTable } from "/files/chart.js";
import { el, find, latecomer, randomId } from "/files/dom.js";
import { banner, showUser, signedOut } from "/files/header.js";
import { Live } from "/files/live.js";
import { markdown } from "/files/markdown.js";
import { Outbox } from "/files/outbox.js";

const PLACE = "news"; // the conversation in which goodbot speaks unasked: there a training is told to its end
const LOOK_MS = 15_000;
const SOON_MS = 1_000;
const TRAINING_MS = 3_000; // each step of it is told, and a look reads thousands of rated answers
const BUTTONS = {
  train: "train", resume: "resume", pause: "pause", cancel: "train stop",
  keep: "adapters pin", "let-go": "adapters unpin", back: "rollback", why: "why",
};

class Progress {
  #seen = {}; // what each part shows, as text: it is drawn anew only when that changes
  #told = new Map(); // by the ids of what was done here: where its answer is shown
  #soon = 0;

  async run() {
    const waits = (problem) => banner(problem.message);
    const me = await signedIn(waits);
    showUser(me);
    this.may = new Set(me.commands.map(({ name }) => name));
    this.outbox = new Outbox(me.user, me.now, (problem) => this.#sent(problem));
    for (const [id, words] of Object.entries(BUTTONS)) {
      find(`#${id}`).addEventListener("click", ({ target }) => {
        // The version that is shown here, whichever answers by now.
        this.#do({ say: `/rl ${words}${id === "keep" ? ` ${this.version}` : ""}` }, target);
      });
    }
    await persistently(() => this.#load(), waits);
    banner("");
    this.outbox.send(); // what another page of this tab has left
    addEventListener("resize", () => this.#shares(this.versions));
    document.addEventListener("visibilitychange", () => this.#look());
    setInterval(() => this.#look(), LOOK_MS);
    return new Live({
      frame: (frame) => this.#frame(frame),
      learning: () => this.#look(TRAINING_MS),
      stale: () => this.#look(),
      state: (open) => banner(open ? "" : "goodbot cannot be reached. Trying again…"),
      signedOut,
    }).run();
  }

  // Once for all that happens within a moment, while somebody can see it.
  #look(wait = SOON_MS) {
    if (!document.hidden) this.#soon ||= setTimeout(() => this.#again(), wait);
  }

  async #again() {
    this.#soon = 0;
    try {
      await this.#load();
      if (this.old) banner("");
      this.old = false;
    } catch (problem) {
      if (problem.status === 401) return signedOut();
      this.old = true;
      banner(problem.message);
    }
  }

  async #load() {
    const found = await get("/api/progress");
    find("#answers").textContent = found.answers;
    this.#part("#round", found, () => this.#round(found));
    if (found.lesson) this.#part("#learnt", found.lesson, () => this.#learnt(found.lesson));
    if (this.may.has("adapters")) this.#part("#versions", found.versions, () => this.#shares(found.versions));
  }

  #part(selector, content, draw) {
    const text = JSON.stringify(content);
    if (this.#seen[selector] === text) return;
    this.#seen[selector] = text;
    const part = find(selector);
    const focused = part.contains(document.activeElement) && document.activeElement;
    part.hidden = false;
    draw();
    if (focused && (focused.hidden || !focused.isConnected)) (find("button:not([hidden])", part) || part).focus();
  }

  #round({ ratings, needed, next, paused, begun, training }) {
    find("#ring").replaceChildren(ring(ratings, needed, "ratings"));
    find("#round-title").textContent = training ? "A training goes on" : "The next training";
    find("#next").replaceChildren(markdown(training ? "What you rate now counts for the training after this one." : next));
    find("#live").hidden = !training;
    find("#round .waiting")?.remove(); // of a training that has begun no more is told here
    if (training) {
      const { doing, step, steps, left } = training;
      const share = steps ? percent(step / steps) : "";
      find("#live-words").textContent = [doing, share, left].filter(Boolean).join(", ");
      if (steps) find("#done").value = step / steps;
      else find("#done").removeAttribute("value");
    }
    const enough = ratings >= needed;
    primary(find("#train"), enough);
    primary(find("#rate"), !enough && !training);
    this.#offer("train", "train", !begun && !paused);
    this.#offer("resume", "resume", paused);
    this.#offer("pause", "pause", training);
    this.#offer("cancel", "train", begun);
  }

  #learnt({ version, told, pinned, pairs }) {
    this.version = version;
    find("#lesson").replaceChildren(
      version ? el("p", { class: "meta" }, el("span", { class: "badge" }, `Version ${version}`), pinned ? "kept: no newer version answers" : "") : "",
      el("p", {}, told),
      version ? "" : el("p", { class: "count" }, "After a training you read here what has changed in the answers."),
      ...pairs.map(pairOf));
    this.#offer("keep", "adapters", version && !pinned);
    this.#offer("let-go", "adapters", pinned);
    this.#offer("back", "rollback", version);
    this.#offer("why", "why", version);
  }

  #shares(versions) {
    this.versions = versions;
    if (!versions) return;
    const place = find("#shares");
    const [focused, open] = [place.contains(document.activeElement), find("details[open]", place)];
    place.replaceChildren(...(versions.length ? [
      shares(versions, Math.max(240, place.clientWidth)),
      el("p", { class: "count" }, "How many of the rated answers were good, version by version. The more ratings, the narrower the band."),
      sharesTable(versions)] : [
      el("p", {}, "No answer is rated yet."),
      el("p", { class: "count" }, "Rate some answers: here you see which version people like best.")]));
    if (open) find("details", place).open = true;
    if (focused) find("summary", place)?.focus();
  }

  #offer(id, command, when) {
    find(`#${id}`).hidden = !(when && this.may.has(command));
  }

  // A command, or an answer to what one asked back; what it comes to is told in the same part of the page.
  async #do(event, from) {
    const place = find(".told", from.closest("section"));
    const id = randomId();
    this.#told.set(id, place);
    if (place.contains(from)) place.focus(); // the button that was pressed goes
    place.replaceChildren(el("p", { class: "count waiting" }, "One moment …"));
    try {
      const { outcome, text } = await this.outbox.add({ id, in: PLACE, ...event });
      if (outcome !== "accepted") tell(place, text);
    } catch (problem) {
      tell(place, problem.message);
    }
  }

  #frame(frame) {
    // A training that ends within a second is told by its news alone; and what is rated elsewhere counts here.
    if ((frame.entry && frame.in === PLACE) || frame.counted) this.#look();
    const place = "receipt" in frame && this.#told.get(frame.of);
    if (!place) return;
    tell(place, frame.receipt, frame.offer.map((one) => latecomer(one.label, {
      class: "chip small", onclick: ({ target }) => this.#do({ press: one.action }, target),
    })));
    this.#look();
  }

  #sent(problem) {
    if (problem?.status === 401) return signedOut();
    return banner(problem ? problem.message : "");
  }
}

function pairOf({ prompt, before, after }) {
  const answer = (label, text) => el("div", {}, el("dt", { class: "label" }, label), el("dd", { class: "words plain" }, text || "(empty)"));
  return el("article", { class: "pair" }, el("h3", {}, prompt), el("dl", {}, answer("Before", before), answer("Now", after)));
}

// The one button that most people want next stands out.
function primary(node, on) {
  node.classList.toggle("primary", on);
  node.classList.toggle("chip", !on);
}

function tell(place, text, choices = []) {
  if (!text) return place.replaceChildren();
  return place.replaceChildren(el("div", { class: "words" }, markdown(text)), choices.length ? el("div", { class: "row" }, ...choices) : "");
}

new Progress().run().catch((problem) => (problem.status === 401 ? signedOut() : banner(problem.message)));
