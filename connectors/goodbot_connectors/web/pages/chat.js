// SPDX-License-Identifier: Apache-2.0
// The chat page: brings together who is signed in, the line, the outbox and the open conversation.

import { get, persistently, signedIn } from "/files/api.js";
import { Composer } from "/files/composer.js";
import { announce, find, randomId } from "/files/dom.js";
import { banner, remember, showUser, signedOut } from "/files/header.js";
import { listen, ratingKeys, showHelp } from "/files/keys.js";
import { Live, isAfter } from "/files/live.js";
import { Outbox } from "/files/outbox.js";
import { Sidebar } from "/files/sidebar.js";
import { say } from "/files/texts.js";
import { Thread } from "/files/thread.js";

const RECENT_MS = 12 * 3600 * 1000;

class Chat {
  #read = ""; // the frame up to which the open conversation has been read
  #listed = ""; // the frame up to which the list of conversations goes
  #queued = null; // frames that came while it was being read
  #opening = 0; // how often one was asked for
  #asked = new Map(); // what this page has asked, until it is answered

  async run() {
    const me = await signedIn((problem) => banner(problem.message));
    banner("");
    this.outbox = new Outbox(me.user, me.now, (problem) => this.#sent(problem));
    this.thread = new Thread((event, view) => this.act(event, view), me.label);
    this.sidebar = new Sidebar((id) => this.open(id), (id, what) => this.arrange(id, what));
    this.composer = new Composer({
      say: (text) => this.say(text), stop: () => this.stop(), asked: () => this.thread.asked, commands: me.commands,
    });
    this.#list(me);
    this.#keyboard();
    addEventListener("hashchange", () => this.open(this.#named()));
    const [latest] = me.conversations.filter((one) => one.id !== "news");
    const recent = latest && me.now - latest.at < RECENT_MS ? latest.id : "";
    await this.open(this.#named() || recent);
    showUser(me);
    this.outbox.send();
    this.live = new Live({
      frame: (frame) => (this.#queued ? this.#queued.push(frame) : this.#frame(frame)),
      stale: () => this.#refresh(),
      state: (open) => banner(open ? "" : say("page_kept_until")),
      signedOut,
    }, me.n);
    await this.live.run();
  }

  #named() {
    const name = location.hash.slice(1);
    return /^[\w-]{1,40}$/.test(name) ? name : "";
  }

  // Show a conversation. One without a name begins now: it is empty, and there is nothing to wait
  // for, so that what is typed next can only be meant for it.
  async open(id) {
    const wanted = id || randomId();
    const opening = ++this.#opening;
    const isLast = () => this.#opening === opening; // else it was asked for again, or another was
    this.#queued ??= [];
    if (!id) return this.#show(wanted, { n: this.#read, entries: [], said: {} });
    let state;
    try {
      state = await persistently(() => get("/api/conversation", { id: wanted }), (problem) => banner(problem.message));
    } catch (problem) {
      if (!isLast()) return undefined;
      this.#queued = null;
      return problem.status === 401 ? signedOut() : banner(problem.message);
    }
    banner("");
    return isLast() ? this.#show(wanted, state) : undefined;
  }

  #show(id, state) {
    this.#read = state.n;
    this.thread.load(id, state);
    const frames = this.#queued;
    this.#queued = null;
    for (const frame of frames) this.#frame(frame);
    this.sidebar.current(id);
    this.composer.open(id);
    return this.#writing();
  }

  async #refresh() {
    await this.open(this.thread.id);
    const me = await get("/api/me").catch(() => null);
    if (me) this.#list(me);
  }

  // An answer that took its time may be older than what the line has told meanwhile.
  #list({ n, conversations }) {
    if (n !== this.#listed && !isAfter(n, this.#listed)) return;
    this.#listed = n;
    this.sidebar.show(conversations);
  }

  #frame(frame) {
    if (frame.conversations) {
      this.#list(frame);
      if (frame.deleted) announce(say("page_deleted"));
      return frame.deleted && frame.deleted === this.thread.id ? this.sidebar.begin() : undefined;
    }
    if (!isAfter(frame.n, this.#read) && !("receipt" in frame)) return undefined; // no state holds receipts
    if (frame.in !== this.thread.id) {
      if (frame.receipt && frame.outcome !== "accepted") announce(frame.receipt);
      if (frame.entry && frame.entry.by !== "you") this.sidebar.unread(frame.in);
      return undefined;
    }
    if (frame.entry) {
      this.thread.put(frame.entry);
      this.#answered(frame.entry);
    }
    if (frame.grow) this.thread.grow(frame.id, frame.grow);
    if (frame.hide) this.thread.hide(frame.hide);
    if (frame.said) this.thread.said(frame.turn, frame.said);
    if ("receipt" in frame) {
      remember(frame.counted);
      this.thread.receipt(frame);
    }
    return this.#writing();
  }

  // A question that came to nothing stands in the field again, to be changed.
  #answered({ to, state }) {
    if (!to || state === "writing") return;
    const text = this.#asked.get(to);
    this.#asked.delete(to);
    if (text && state === "failed") this.composer.putBack(text);
  }

  async say(text) {
    history.replaceState(null, "", `#${this.thread.id}`);
    const place = this.thread.id;
    const id = randomId();
    this.#asked.set(id, text);
    const sent = this.outbox.add({ id, say: text, in: place });
    this.thread.toEnd();
    try {
      await sent;
    } catch (problem) {
      this.#asked.delete(id);
      banner(problem.message);
      this.composer.putBack(text);
    }
  }

  // Something was pressed at an answer (`view`), or in a note.
  async act(event, view) {
    if (event.edit) return this.composer.edit(event.edit);
    const place = { in: this.thread.id };
    const about = view ? { turn: view.entry.turn, message: view.entry.id } : {};
    const again = event.press?.startsWith("again:");
    if (again) view.again(true);
    this.#writing();
    try {
      const done = await this.outbox.add({ ...event, ...place, ...about });
      if (again && done.outcome !== "accepted") view.again(false);
      return done;
    } catch (problem) {
      view?.again(false);
      if (view?.bar) view.bar.tell(problem.message, [], true);
      else banner(problem.message);
      return { outcome: "failed" };
    }
  }

  // One of the list is renamed or deleted.
  arrange(id, what) {
    this.outbox.add({ ...what, in: id }).catch((problem) => banner(problem.message));
  }

  stop() {
    const { writing, waiting } = this.thread;
    const entry = writing?.entry.id || (waiting && `a-${waiting.entry.id}`);
    this.#asked.delete(writing?.entry.to || waiting?.entry.id); // who stops it does not want it again
    if (entry) this.outbox.add({ stop: entry, in: this.thread.id }).catch(() => null);
  }

  #sent(problem) {
    if (problem?.status === 401) return signedOut();
    return this.thread?.drawTail(this.outbox, problem);
  }

  #writing() {
    this.composer.busy(Boolean(this.thread.writing || this.thread.waiting));
  }

  #keyboard() {
    const bar = () => this.thread.current?.bar;
    listen([
      ...ratingKeys(bar),
      { keys: ["u"], does: say("page_key_undo"), run: () => bar()?.undo() },
      { keys: ["s", "k"], does: say("page_key_previous"), run: () => this.thread.select(-1) },
      { keys: ["j"], does: say("page_key_next"), run: () => this.thread.select(1) },
      { keys: ["y"], does: say("page_key_copy"), run: () => this.thread.copy() },
      { keys: ["/"], does: say("page_key_write"), run: () => this.composer.focus() },
      { keys: ["↑"], does: say("page_key_edit") },
      { keys: ["n"], does: say("page_new_conversation"), run: () => this.sidebar.begin() },
      { keys: ["Escape"], does: say("page_key_leave"), run: () => this.stop() },
      { keys: ["?"], does: say("page_these_keys"), run: showHelp },
    ]);
  }
}

new Chat().run().catch((problem) => (problem.status === 401 ? signedOut() : banner(problem.message)));
