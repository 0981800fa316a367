// SPDX-License-Identifier: Apache-2.0
// The line on which goodbot tells what happens. It comes back by itself, and asks for what it missed.

import { get, pause, persistently } from "/files/api.js";
import { forgotten, showLearning } from "/files/header.js";

const FORGOTTEN = 4001; // the code with which goodbot ends the line of somebody whom it has forgotten

export class Live {
  #after;
  #handlers;
  #socket = null;

  // `frame(frame)`; `stale()`: read the state anew; `state(open)`; `signedOut()`; if wanted, `learning()`:
  // a training has begun, got on or ended. `after`: the frame up to which the page knows all; else it reads anew.
  constructor(handlers, after = "") {
    this.#handlers = handlers;
    this.#after = after;
    addEventListener("pagehide", () => this.#socket?.close());
  }

  async run() {
    for (let wait = 0.5; ; wait = Math.min(2 * wait, 10)) {
      const { opened, code } = await this.#once();
      if (code === FORGOTTEN) return forgotten();
      if (opened) wait = 0.5;
      this.#handlers.state(false);
      await pause(wait);
      try {
        await persistently(() => get("/api/me"), () => null);
      } catch (problem) {
        if (problem.status === 401) return this.#handlers.signedOut();
      }
    }
  }

  // Resolves when the line is cut; to whether it was ever open, and why it ended.
  #once() {
    return new Promise((cut) => {
      const scheme = location.protocol === "https:" ? "wss:" : "ws:";
      const after = encodeURIComponent(this.#after);
      const socket = new WebSocket(`${scheme}//${location.host}/api/live?after=${after}`);
      this.#socket = socket;
      let opened = false;
      socket.addEventListener("open", () => { opened = true; this.#handlers.state(true); });
      socket.addEventListener("message", (event) => this.#heard(JSON.parse(event.data)));
      socket.addEventListener("close", ({ code }) => cut({ opened, code }));
    });
  }

  #heard(frame) {
    this.#after = frame.n;
    if ("learning" in frame) {
      showLearning(frame.learning);
      return this.#handlers.learning?.();
    }
    if (frame.stale) this.#handlers.stale();
    else this.#handlers.frame(frame);
    return undefined;
  }
}

// Whether frame `n` came after what a state with the name `read` holds.
export function isAfter(n, read) {
  const [epoch, number] = n.split("-");
  const [readEpoch, readNumber] = read.split("-");
  return epoch !== readEpoch || Number(number) > Number(readNumber);
}
