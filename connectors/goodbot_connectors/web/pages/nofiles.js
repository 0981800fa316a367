// SPDX-License-Identifier: Apache-2.0
// A file cannot be sent: whoever drops or pastes one is told so, and the browser does not leave the page for it.

import { button, el } from "/files/dom.js";
import { say } from "/files/texts.js";

let dialog = null;

function refuse(event) {
  event.preventDefault();
  if (!dialog) {
    dialog = el("dialog", { id: "no-files", "aria-labelledby": "no-files-why" }, el("p", { id: "no-files-why" }, say("page_no_files")),
      button(say("page_close"), { class: "primary small", autofocus: true, onclick: () => dialog.close() }));
    document.body.append(dialog);
  }
  if (!dialog.open) dialog.showModal();
}

const hasFile = (data) => Boolean(data?.types.includes("Files"));

addEventListener("dragover", (event) => hasFile(event.dataTransfer) && event.preventDefault()); // else the drop is the browser's
addEventListener("drop", (event) => hasFile(event.dataTransfer) && refuse(event));
// What is copied out of a document may be a picture, too: then its words are meant.
addEventListener("paste", (event) => {
  const data = event.clipboardData;
  if (hasFile(data) && !data.types.includes("text/plain")) refuse(event);
});
