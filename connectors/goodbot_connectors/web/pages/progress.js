// SPDX-License-Identifier: Apache-2.0
// How far learning is. What is shown is what goodbot tells this person; each button is a command of theirs.

import { get } from "/files/api.js";
import { curve, curveTold, percent, ring, shares, sharesTable } from "/files/chart.js";
import { pairOf } from "/files/differ.js";
import { el, find } from "/files/dom.js";
import { markdown } from "/files/markdown.js";
import { Page } from "/files/page.js";
import { listed, say } from "/files/texts.js";

const BUTTONS = {
  train: "train", resume: "resume", pause: "pause", cancel: "train stop",
  keep: "adapters pin", "let-go": "adapters unpin", back: "rollback", why: "why",
};

class Progress extends Page {
  ready() {
    for (const [id, words] of Object.entries(BUTTONS)) {
      find(`#${id}`).addEventListener("click", ({ target }) => {
        // The version that is shown here, whichever answers by now.
        this.do({ say: `/rl ${words}${id === "keep" ? ` ${this.version}` : ""}` }, target);
      });
    }
    addEventListener("resize", () => this.#shares(this.versions));
  }

  async load() {
    const found = await get("/api/progress");
    find("#answers").textContent = found.answers;
    this.part("#round", found, () => this.#round(found));
    if (found.lesson) this.part("#learnt", found.lesson, () => this.#learnt(found.lesson));
    if (this.may.has("adapters")) this.part("#versions", found.versions, () => this.#shares(found.versions));
  }

  #round({ ratings, needed, next, paused, begun, training }) {
    find("#ring").replaceChildren(ring(ratings, needed));
    find("#round-title").textContent = say(training ? "page_training_on" : "page_next_training");
    find("#next").replaceChildren(markdown(training ? say("page_rate_for_next") : next));
    find("#live").hidden = !training;
    find("#round .waiting")?.remove(); // of a training that has begun no more is told here
    if (training) {
      const { doing, step, steps, left, curve: points } = training;
      const share = steps ? percent(step / steps) : "";
      find("#live-words").textContent = listed(doing, share, left);
      if (steps) find("#done").value = step / steps;
      else find("#done").removeAttribute("value");
      find("#curve").replaceChildren(...(points.length > 1 ? [curve(points), el("p", { class: "count" }, curveTold(points))] : []));
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
      version ? el("p", { class: "meta" }, el("span", { class: "badge" }, say("page_version_badge", { version: String(version) })), pinned ? say("page_kept_version") : "") : "",
      el("p", {}, told),
      version ? "" : el("p", { class: "count" }, say("page_learnt_later")),
      ...pairs.map((pair) => pairOf(pair, [say("page_before"), say("page_now")])));
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
      el("p", { class: "count" }, say("page_liked_how")),
      sharesTable(versions)] : [
      el("p", {}, say("page_none_rated")),
      el("p", { class: "count" }, say("page_rate_some"))]));
    if (open) find("details", place).open = true;
    if (focused) find("summary", place)?.focus();
  }

  #offer(id, command, when) {
    find(`#${id}`).hidden = !(when && this.may.has(command));
  }
}

// The one button that most people want next stands out.
function primary(node, on) {
  node.classList.toggle("primary", on);
  node.classList.toggle("chip", !on);
}

new Progress().start();
