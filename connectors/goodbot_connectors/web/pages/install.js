// SPDX-License-Identifier: Apache-2.0
// Lets a phone or a desktop install goodbot as an app.

import { el } from "/files/dom.js";

document.head.append(
  el("link", { rel: "manifest", href: "/manifest.webmanifest" }),
  el("link", { rel: "apple-touch-icon", href: "/files/icon-192.png" }));

// Browsers have it over https and at this machine's own address only; without it all works but offline.
navigator.serviceWorker?.register("/worker.js").catch(() => null);
