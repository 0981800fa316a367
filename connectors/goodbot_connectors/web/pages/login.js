// SPDX-License-Identifier: Apache-2.0
// Signing in with a one-time code. The code comes in the fragment, which no server ever sees, and is
// used when the button is pressed: programs that look at links beforehand do not use it up.

import { persistently, post } from "/files/api.js";
import { find } from "/files/dom.js";

const form = find("#sign-in");
const field = find("#code");
const problem = find("#problem");
const submit = find("#submit");

function codeOf(text) {
  const at = text.indexOf("#");
  return (at < 0 ? text : text.slice(at + 1)).trim();
}

function take() {
  const given = codeOf(location.hash);
  if (!given) return;
  history.replaceState(null, "", "/login"); // out of the address bar and the history
  field.value = given;
  problem.textContent = "";
  find("#paste").hidden = true;
  find("#how").hidden = true;
  find("#ready").hidden = false;
  submit.focus();
}

addEventListener("hashchange", take); // a link that is opened in this tab loads nothing anew
take();

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const code = codeOf(field.value);
  if (!code) return field.focus();
  submit.disabled = true;
  problem.textContent = "";
  try {
    const { home } = await persistently(() => post("/api/login", { code }), (passing) => { problem.textContent = passing.message; });
    location.replace(home);
  } catch (error) {
    problem.textContent = error.message;
    find("#paste").hidden = false;
    find("#how").hidden = false;
    find("#ready").hidden = true;
    field.value = "";
    field.focus();
  } finally {
    submit.disabled = false;
  }
});
