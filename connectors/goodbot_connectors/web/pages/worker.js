// SPDX-License-Identifier: Apache-2.0
// Opens the pages where goodbot cannot be reached: from copies of our own files, and of nothing else.
// What is asked of goodbot (`/api/`) never comes by here, and an address is kept without what stands
// behind its `?`, which may be somebody's words.

const CACHE = "shell THE_VERSION"; // of all files together: `site.py` fills both in
const PAGES = new Set(["THE_PAGES"]);

const isShell = ({ origin, pathname }) => origin === location.origin && (PAGES.has(pathname) || pathname.startsWith("/files/"));

async function fresh(request, path) {
  const cache = await caches.open(CACHE);
  try {
    const response = await fetch(request);
    if (response.ok && response.type === "basic" && !response.redirected) await cache.put(path, response.clone());
    return response;
  } catch (problem) {
    const kept = await cache.match(path);
    if (kept) return kept;
    throw problem;
  }
}

addEventListener("install", () => self.skipWaiting());

addEventListener("activate", (event) => {
  const older = async () => {
    for (const name of await caches.keys()) if (name !== CACHE) await caches.delete(name);
    await self.clients.claim();
  };
  event.waitUntil(older());
});

addEventListener("fetch", (event) => {
  const url = new URL(event.request.url);
  if (event.request.method === "GET" && isShell(url)) event.respondWith(fresh(event.request, url.pathname));
});

// A notification is pressed: to the answers, in a page that is open if there is one.
addEventListener("notificationclick", (event) => {
  const go = async () => {
    const [open] = await self.clients.matchAll({ type: "window" });
    if (!open) return self.clients.openWindow("/rate");
    await open.focus();
    return open.navigate("/rate");
  };
  event.notification.close();
  event.waitUntil(go());
});
