// SPDX-License-Identifier: Apache-2.0
// One conversation on the page: its entries in goodbot's order, what waits to be sent, the selection.

import { announce, find } from "/files/dom.js";
import { EntryView, commandNote, thinking, unsent } from "/files/entry.js";

const NEAR = 120; // pixels from the end within which the page follows the answer

export class Thread {
  #place = find("#entries");
  #scroller = find("#thread");
  #latest = find("#latest");
  #welcome = find("#welcome");
  #act;
  #label;
  #views = [];
  #said = {};
  #tail = document.createElement("div");
  #notes = new Map(); // each note, and the entry behind which it stands
  #current = null;
  #follows = true;
  id = "";

  // `act(event, view)` sends what was pressed; `label` is how a demo model's answers begin.
  constructor(act, label) {
    this.#act = act;
    this.#label = label;
    this.#scroller.addEventListener("scroll", () => this.#mark());
    // A line above or below that comes or goes takes nothing out of sight.
    new ResizeObserver(() => this.#follows && this.toEnd()).observe(this.#scroller);
    this.#latest.addEventListener("click", () => this.toEnd(true));
  }

  load(id, { entries, said }) {
    const same = id === this.id;
    const follow = !same || this.#isNearEnd();
    const [top, focused] = [this.#scroller.scrollTop, document.activeElement];
    const before = same ? this.#views : []; // in one of them somebody may be writing a better answer
    if (!same) this.#notes.clear();
    this.id = id;
    this.#said = said;
    this.#views = entries.map((entry) => {
      const there = before.find((view) => view.entry.id === entry.id);
      there?.again(false);
      there?.update(entry);
      return there ?? this.#view(entry);
    });
    this.#place.replaceChildren(...this.#views.map((view) => view.element), this.#tail);
    for (const [note, behind] of this.#notes) this.#place.insertBefore(note, this.#after(behind));
    for (const view of this.#views) this.#showSaid(view);
    this.#current = this.#views.find((view) => view.entry.id === this.#current?.entry.id) || null;
    this.drawTail();
    if (focused?.isConnected) focused.focus({ preventScroll: true });
    if (follow) this.toEnd();
    else this.#scroller.scrollTop = top;
  }

  put(entry) {
    const follow = this.#isNearEnd();
    const there = this.#views.find((view) => view.entry.id === entry.id);
    if (there) {
      there.again(false);
      there.update(entry);
      this.#showSaid(there);
    } else {
      const view = this.#view(entry);
      const at = this.#position(entry);
      this.#place.insertBefore(view.element, this.#views[at]?.element ?? this.#tail);
      this.#views.splice(at, 0, view);
      this.#showSaid(view);
    }
    this.drawTail();
    if (follow) this.toEnd();
  }

  grow(id, text) {
    const follow = this.#isNearEnd();
    this.#views.find((view) => view.entry.id === id)?.grow(text);
    if (follow) requestAnimationFrame(() => this.toEnd());
  }

  hide(id) {
    const at = this.#views.findIndex((view) => view.entry.id === id);
    if (at < 0) return;
    this.#views[at].element.remove();
    this.#views.splice(at, 1);
  }

  said(turn, said) {
    this.#said[turn] = said;
    for (const view of this.#views) if (view.entry.turn === turn) this.#showSaid(view);
  }

  // A word for this person: at the answer that it is about, else at the end.
  receipt(frame) {
    const view = this.#views.find((one) => one.bar && one.entry.turn === frame.turn);
    if (view && !frame.command) {
      const follow = this.#isNearEnd();
      if (frame.outcome !== "accepted") view.again(false);
      view.bar.tell(frame.receipt, frame.offer, frame.outcome !== "accepted");
      if (follow) this.toEnd();
      return undefined;
    }
    if (!frame.receipt) return undefined;
    const note = commandNote(frame, (action) => this.#act({ press: action }, null), () => {
      note.remove();
      this.#notes.delete(note);
      this.drawTail();
    });
    this.#notes.set(note, this.#views.at(-1)?.entry.id);
    this.#place.insertBefore(note, this.#tail);
    this.drawTail();
    if (note.offsetHeight > this.#scroller.clientHeight) note.scrollIntoView(); // it is read from its beginning
    else this.toEnd();
    return announce(frame.receipt);
  }

  // What stands behind the last entry: notes, what is not sent, the dots.
  drawTail(outbox = this.outbox, problem = this.problem) {
    this.outbox = outbox;
    this.problem = problem;
    const here = (outbox?.waiting || []).filter((event) => event.say && event.in === this.id && !this.#has(event.id));
    const asked = this.waiting;
    const answered = asked && this.#views.some((view) => view.entry.to === asked.entry.id);
    this.#tail.replaceChildren(...here.map((event) => unsent(event, problem)));
    if (asked && !answered) this.#tail.append(thinking(asked.entry));
    this.#welcome.hidden = Boolean(this.#views.length || this.#notes.size || this.#tail.childNodes.length);
  }

  // The question that has no answer yet, and the answer that is being written.
  get waiting() {
    return this.#views.findLast((view) => view.entry.state === "waiting");
  }

  get writing() {
    return this.#views.findLast((view) => view.entry.state === "writing" || view.element.classList.contains("again"));
  }

  // The answer that the keyboard means: the one selected, else the last.
  get current() {
    const rateable = this.#rateable();
    return rateable.includes(this.#current) ? this.#current : rateable.at(-1);
  }

  // What this person asked last.
  get asked() {
    return this.#views.findLast((view) => view.entry.by === "you")?.entry.text ?? "";
  }

  copy() {
    (this.current ?? this.#views.findLast((view) => view.copy))?.copy?.click();
  }

  select(step) {
    const rateable = this.#rateable();
    const chosen = rateable[rateable.indexOf(this.current) + step];
    if (!chosen) return;
    this.#current?.element.classList.remove("current");
    this.#current = chosen;
    chosen.element.classList.add("current");
    chosen.element.focus({ preventScroll: true });
    chosen.element.scrollIntoView({ block: "nearest" });
  }

  toEnd(smooth = false) {
    const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    this.#scroller.scrollTo({ top: this.#scroller.scrollHeight, behavior: smooth && !calm ? "smooth" : "instant" });
    this.#mark();
  }

  #rateable() {
    return this.#views.filter((view) => view.bar);
  }

  #view(entry) {
    return new EntryView(entry, this.#act, this.#label);
  }

  #showSaid(view) {
    view.bar?.show(this.#said[view.entry.turn] || {});
  }

  #has(id) {
    return this.#views.some((view) => view.entry.id === id);
  }

  #position(entry) {
    const family = this.#views.findLastIndex((view) => entry.to && [view.entry.id, view.entry.to].includes(entry.to));
    if (family >= 0) return family + 1;
    const answer = this.#views.findIndex((view) => view.entry.to === entry.id);
    return answer >= 0 ? answer : this.#views.length;
  }

  // The element in front of which something stands that comes behind this entry.
  #after(id) {
    const at = this.#views.findIndex((view) => view.entry.id === id);
    return this.#views[at + 1]?.element ?? this.#tail; // -1 + 1: in front of all
  }

  #isNearEnd() {
    const { scrollHeight, scrollTop, clientHeight } = this.#scroller;
    return scrollHeight - scrollTop - clientHeight < NEAR;
  }

  #mark() {
    this.#follows = this.#isNearEnd();
    this.#latest.hidden = this.#follows;
  }
}
