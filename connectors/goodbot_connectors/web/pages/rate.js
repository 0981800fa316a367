// SPDX-License-Identifier: Apache-2.0
// The inbox: one answer at a time, from every connector; a rating brings the next one.

import { get, persistently, signedIn } from "/files/api.js";
import { announce, find } from "/files/dom.js";
import { card, notForYou, nothing } from "/files/card.js";
import { Filters } from "/files/filters.js";
import { banner, progress, remember, showUser, signedOut } from "/files/header.js";
import { listen, ratingKeys, showHelp } from "/files/keys.js";
import { Live } from "/files/live.js";
import { Outbox } from "/files/outbox.js";
import { Queued } from "/files/queued.js";
import { Push } from "/files/push.js";
import { Tell } from "/files/tell.js";
import { say } from "/files/texts.js";

const LOOK_MS = 15_000; // so often it is asked whether there are new ones, once all have been seen
const PLACE = "inbox"; // the conversation that what is done here belongs to: none that is shown

class Inbox {
  #answers = [];
  #at = 0;
  #more = false;
  #last = null; // the answer that was rated last, with its rating bar's words
  #asked = 0;
  #turning = false; // the next page is on its way
  bar = null;

  async run() {
    const me = await signedIn((problem) => banner(problem.message));
    banner("");
    if (!me.rates) {
      showUser(me);
      return find("main").replaceChildren(notForYou());
    }
    this.outbox = new Outbox(me.user, me.now, (problem) => this.#sent(problem));
    this.filters = new Filters(() => this.load());
    this.queued = new Queued();
    find("#skip").addEventListener("click", () => this.step(1));
    find("#back").addEventListener("click", () => this.step(-1));
    find("#undo").addEventListener("click", () => this.undo());
    listen([
      ...ratingKeys(() => this.bar),
      { keys: ["s", "j"], does: say("page_key_skip"), run: () => this.step(1) },
      { keys: ["k"], does: say("page_key_back"), run: () => this.step(-1) },
      { keys: ["u"], does: say("page_key_undo_last"), run: () => this.undo() },
      { keys: ["/"], does: say("page_search"), run: () => find("#text").focus() },
      { keys: ["?"], does: say("page_these_keys"), run: showHelp },
    ]);
    showUser(me);
    this.#progress();
    this.outbox.send();
    await this.queued.look();
    await this.load();
    setInterval(() => this.#look(), LOOK_MS);
    new Tell().begin(me.user);
    new Push().begin().catch(() => null); // the browser does not have it: nothing is offered
    const line = { frame: () => null, stale: () => null, state: () => null, signedOut };
    return new Live(line).run();
  }

  async load() {
    const asked = ++this.#asked;
    const page = await this.#page("");
    if (!page || asked !== this.#asked) return;
    this.#answers = page.answers;
    this.#more = page.more;
    this.#at = 0;
    this.filters.learn(page);
    this.#draw();
  }

  // Once all have been seen, those that are new come by themselves.
  async #look() {
    const query = this.filters.query();
    if (this.#answers[this.#at] || this.#turning || query.rated || document.hidden) return;
    const asked = this.#asked;
    const page = await get("/api/inbox", query).catch(() => null); // it is asked again
    if (!page || asked !== this.#asked || this.#answers[this.#at]) return;
    const known = new Set(this.#answers.map((answer) => answer.turn));
    const fresh = page.answers.filter((answer) => !known.has(answer.turn));
    if (!fresh.length) return;
    this.#answers.push(...fresh);
    this.filters.learn({ ...page, answers: fresh });
    this.#draw();
  }

  async #page(before) {
    try {
      const query = { ...this.filters.query(), before };
      const page = await persistently(() => get("/api/inbox", query), (problem) => banner(problem.message));
      banner("");
      return page;
    } catch (problem) {
      if (problem.status === 401) signedOut();
      else banner(problem.message);
      return null;
    }
  }

  async step(by) {
    const next = this.#at + by;
    if (next < 0 || this.#turning) return;
    if (next >= this.#answers.length && this.#more) {
      const asked = this.#asked;
      this.#turning = true;
      this.bar = null; // a key that is pressed meanwhile does not mean the answer that is left
      const page = await this.#page(this.#answers.at(-1).turn);
      this.#turning = false;
      if (asked !== this.#asked) return; // other answers are looked for now
      if (!page) {
        this.#draw();
        return;
      }
      this.#answers.push(...page.answers);
      this.#more = page.more;
      this.filters.learn(page);
    }
    this.#at = Math.min(next, this.#answers.length);
    this.#draw();
  }

  #draw() {
    const answer = this.#answers[this.#at];
    const place = find("#card");
    find("#back").disabled = this.#at === 0;
    find("#skip").disabled = !answer;
    const left = this.#answers.length - this.#at;
    find("#count").textContent = answer ? say(this.#more ? "page_left_or_more" : "page_left", { count: left }) : "";
    if (!answer) {
      this.bar = null;
      const skipped = this.#answers.filter(({ said }) => !said.thumb && !said.stars).length;
      place.replaceChildren(this.queued.end() || nothing({ narrowed: this.filters.narrowed, skipped, again: () => this.load() }));
      return;
    }
    const shown = card(answer, (event) => this.act(event, answer, shown.bar));
    this.bar = shown.bar;
    const inside = place.contains(document.activeElement);
    place.replaceChildren(shown.element);
    if (inside) place.focus({ preventScroll: true }); // the button that had the focus is gone
    if (place.getBoundingClientRect().top < 0) place.scrollIntoView();
    announce(shown.summary);
  }

  // What was done at an answer. A rating moves on at once; its receipt follows below.
  async act(event, answer, bar) {
    const rates = event.press !== undefined;
    const before = answer.said;
    const sent = this.outbox.add({ ...event, turn: answer.turn, in: PLACE });
    answer.said = bar.said;
    if (rates && !bar.writing) this.step(1);
    try {
      const done = await sent;
      const accepted = done.outcome === "accepted";
      if (!accepted) answer.said = before;
      this.#told(answer, done.text, rates && accepted, !accepted, done.counted);
      if (!rates) bar.tell(done.text, [], !accepted);
      return done;
    } catch (problem) {
      answer.said = before;
      this.#told(answer, problem.message, false, true);
      return { outcome: "failed" };
    }
  }

  async undo() {
    const answer = this.#last ?? (this.bar && this.#answers[this.#at]);
    if (!answer || !Object.keys(answer.said).length) return;
    const before = answer.said;
    answer.said = {};
    this.#last = null;
    const at = this.#answers.indexOf(answer);
    if (at >= 0) this.#at = at;
    else this.#answers.splice(this.#at, 0, answer); // the filters have changed meanwhile
    this.#draw();
    try {
      const done = await this.outbox.add({ undo: "", turn: answer.turn, in: PLACE });
      this.#told(answer, done.text, false, done.outcome !== "accepted", done.counted);
      if (done.outcome === "accepted") return;
    } catch (problem) {
      this.#told(answer, problem.message, false, true);
    }
    answer.said = before;
    this.#draw();
  }

  #told(answer, text, canUndo, bad, counted) {
    this.#last = canUndo ? answer : null;
    find("#last").hidden = !text;
    find("#last").classList.toggle("error", bad);
    find("#last-words").textContent = text;
    find("#undo").hidden = !canUndo;
    this.#further();
    remember(counted);
    this.#progress();
  }

  // A rating counts in each queue that holds its answer.
  async #further() {
    await this.queued.look();
    if (!this.#answers[this.#at] && this.queued.end()) this.#draw();
  }

  #progress() {
    const last = progress();
    if (!last) return;
    find("#progress").hidden = false;
    find("#progress").max = last.need;
    find("#progress").value = last.have;
    find("#progress-words").textContent = last.words;
  }

  #sent(problem) {
    if (problem?.status === 401) return signedOut();
    const left = this.outbox?.waiting.length || 0;
    if (problem) return banner(say("page_kept_unsent", { why: problem.message, count: left }));
    return banner("");
  }
}

new Inbox().run().catch((problem) => (problem.status === 401 ? signedOut() : banner(problem.message)));
