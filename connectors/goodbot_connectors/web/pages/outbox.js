// SPDX-License-Identifier: Apache-2.0
// What a person did here, until goodbot has stored it. Nothing is sent twice in effect (each has an
// id), nothing out of order, and a reload of the page loses nothing.

import { Problem, pause, post } from "/files/api.js";
import { randomId } from "/files/dom.js";

export class Outbox {
  #key;
  #waiting = [];
  #promises = new Map();
  #sending = false;
  #last = 0;
  #ahead = 0;
  #changed;

  // `changed(problem)` is called when something was added or sent, or could not be sent.
  constructor(user, now, changed) {
    this.#key = `outbox ${user}`;
    this.#ahead = now - Date.now();
    this.#changed = changed;
    try {
      this.#waiting = JSON.parse(sessionStorage.getItem(this.#key) || "[]");
    } catch {
      this.#waiting = [];
    }
  }

  get waiting() {
    return this.#waiting;
  }

  // The answer of goodbot, or a Problem where it refuses for good.
  add(event) {
    this.#last = Math.max(this.#last + 1, Date.now() + this.#ahead);
    const full = { id: randomId(), at: this.#last, ...event };
    this.#waiting.push(full);
    this.#store();
    const promise = new Promise((taken, refused) => this.#promises.set(full.id, { taken, refused }));
    this.#changed(null);
    this.send();
    return promise;
  }

  async send() {
    if (this.#sending) return;
    this.#sending = true;
    for (let wait = 1; this.#waiting.length; ) {
      const event = this.#waiting[0];
      let problem = null;
      let answer = null;
      try {
        answer = await post("/api/do", event);
      } catch (caught) {
        problem = caught instanceof Problem ? caught : new Problem(0, String(caught));
      }
      if (problem?.status === 401 || problem?.passes) {
        this.#changed(problem);
        if (problem.status === 401) break; // signed out: it is kept until somebody has signed in
        await pause(wait);
        wait = Math.min(2 * wait, 10);
        continue;
      }
      wait = 1;
      this.#waiting.shift();
      this.#store();
      const promise = this.#promises.get(event.id);
      this.#promises.delete(event.id);
      if (problem) promise?.refused(problem);
      else promise?.taken(answer);
      this.#changed(null, event);
    }
    this.#sending = false;
  }

  #store() {
    try {
      sessionStorage.setItem(this.#key, JSON.stringify(this.#waiting));
    } catch {
      // A full or forbidden storage costs what is not sent at a reload, nothing else.
    }
  }
}
