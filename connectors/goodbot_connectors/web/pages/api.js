// SPDX-License-Identifier: Apache-2.0
// Requests to goodbot. A Problem carries a sentence for the person.

import { say } from "/files/texts.js";

export class Problem extends Error {
  constructor(status, sentence) {
    super(sentence);
    this.status = status;
  }

  // Whether the same request may work in a moment.
  get passes() {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }
}

const AWAY = say("page_away");

// Whose page this is: when somebody else signs in in this browser, it is refused, not theirs.
let user = "";

async function ask(path, { headers = {}, ...options }) {
  const own = user ? { "X-Goodbot-User": encodeURIComponent(user) } : {};
  let response;
  try {
    response = await fetch(path, {
      credentials: "same-origin", cache: "no-store", headers: { ...headers, ...own }, ...options,
    });
  } catch {
    throw new Problem(0, AWAY);
  }
  let body = {};
  try {
    body = await response.json();
  } catch {
    if (response.ok) throw new Problem(0, AWAY);
  }
  if (!response.ok) {
    const fallback = response.status === 503 ? say("page_starting") : say("page_refused", { status: String(response.status) });
    throw new Problem(response.status, body.error || fallback);
  }
  return body;
}

export function get(path, query = {}) {
  const words = new URLSearchParams(query).toString();
  return ask(words ? `${path}?${words}` : path, {});
}

export function post(path, body = {}) {
  const headers = { "Content-Type": "application/json" };
  return ask(path, { method: "POST", headers, body: JSON.stringify(body) });
}

// Who is signed in, and from now on whose page this is.
export async function signedIn(onProblem) {
  const me = await persistently(() => get("/api/me"), onProblem);
  user = me.user;
  return me;
}

// Wait, but no longer than until the network is back.
export function pause(seconds) {
  return new Promise((done) => {
    const over = () => {
      clearTimeout(timer);
      removeEventListener("online", over);
      done();
    };
    const timer = setTimeout(over, seconds * 1000);
    addEventListener("online", over);
  });
}

// Ask until there is an answer, or a refusal that stands.
export async function persistently(request, onProblem) {
  for (let wait = 1; ; wait = Math.min(2 * wait, 10)) {
    try {
      return await request();
    } catch (problem) {
      if (!(problem instanceof Problem) || !problem.passes) throw problem;
      onProblem(problem);
    }
    await pause(wait);
  }
}
