// SPDX-License-Identifier: Apache-2.0
// Opens the pages where goodbot cannot be reached: from copies of our own files, and of nothing else.
// What is asked of goodbot (`/api/`) never comes by here, and an address is kept without what stands
// behind its `?`, which may be somebody's words.

const CACHE = "goodbot THE_VERSION"; // of all files together: `site.py` fills both in
const PAGES = new Set(["THE_PAGES"]);
const HOME = "/home"; // goodbot knows whose it is; without it, where they have been
const HOMES = ["/progress", "/"];

const isShell = ({ origin, pathname }) => origin === location.origin && (PAGES.has(pathname) || pathname === HOME || pathname.startsWith("/files/"));

async function fresh(request, path) {
  try {
    const response = await fetch(request);
    if (response.ok && response.type === "basic" && !response.redirected) await keep(path, response.clone());
    return response;
  } catch (problem) {
    for (const one of path === HOME ? HOMES : [path]) {
      const kept = await caches.match(one, { cacheName: CACHE }).catch(() => null);
      if (kept) return path === HOME ? Response.redirect(one) : kept;
    }
    throw problem;
  }
}

// A browser that has no room for copies, or allows none, still shows the page.
async function keep(path, response) {
  try {
    await (await caches.open(CACHE)).put(path, response);
  } catch {
    // It opens without a connection another time.
  }
}

addEventListener("install", () => self.skipWaiting());

addEventListener("activate", (event) => {
  const older = async () => {
    for (const name of await caches.keys()) if (name.startsWith("goodbot ") && name !== CACHE) await caches.delete(name);
    await self.clients.claim();
  };
  event.waitUntil(older());
});

addEventListener("fetch", (event) => {
  const url = new URL(event.request.url);
  if (event.request.method === "GET" && isShell(url)) event.respondWith(fresh(event.request, url.pathname));
});

// goodbot says how many answers wait, by the service of this browser's maker (`push.js`). It sends nothing
// where a page is open; what comes is always shown, since browsers forbid what comes unseen.
addEventListener("push", (event) => {
  const { told } = event.data.json();
  event.waitUntil(self.registration.showNotification(told, { tag: "waiting", icon: "/files/icon-192.png" }));
});

// A notification is pressed: to the answers, where they are open as they are. No page is led away, for
// somebody may be writing there.
addEventListener("notificationclick", (event) => {
  const go = async () => {
    const pages = await self.clients.matchAll({ type: "window", includeUncontrolled: true });
    const open = pages.find(({ url }) => new URL(url).pathname === "/rate");
    return open ? open.focus() : self.clients.openWindow("/rate");
  };
  event.notification.close();
  event.waitUntil(go());
});
