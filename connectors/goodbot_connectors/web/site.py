# SPDX-License-Identifier: Apache-2.0
"""The files of the pages: read once, named by us, no path of anybody's making."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources

from aiohttp import hdrs, web

from goodbot_connectors.web import guard
from goodbot_connectors.web.wording import filled

_TYPES = {
    "html": "text/html",
    "css": "text/css",
    "js": "text/javascript",
    "svg": "image/svg+xml",
    "png": "image/png",
    "webmanifest": "application/manifest+json",
}
_PAGES = {
    "/": "chat.html",
    "/rate": "rate.html",
    "/progress": "progress.html",
    "/versions": "versions.html",
    "/ratings": "ratings.html",
    "/activity": "activity.html",
    "/report": "report.html",
    "/people": "people.html",
    "/settings": "settings.html",
    "/notes": "notes.html",
    "/login": "login.html",
    # A worker answers for what is below its own address.
    "/worker.js": "worker.js",
    "/manifest.webmanifest": "manifest.webmanifest",
}
_FILES = "/files/"
_VENDORED = "vendored/"
"""What others wrote: scripts that no page loads by itself, with their licences beside them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StaticFile:
    """One file as it is sent; `tag` changes with its content."""

    data: bytes
    type: str
    tag: str


class Site:
    """Answers with pages and files. They hold nothing of anybody: no session is needed."""

    def __init__(self) -> None:
        folder = resources.files("goodbot_connectors.web") / "pages"
        self._files = {
            one.name: _file(one.name, one.read_bytes()) for one in folder.iterdir() if one.is_file()
        }
        self._files |= {
            f"{_VENDORED}{one.name}": _file(one.name, one.read_bytes())
            for one in (folder / "vendored").iterdir()
            if one.name.endswith(".js")
        }
        self._files["worker.js"] = _worker(self._files)
        self._filled: dict[tuple[str, str], StaticFile] = {}
        """Pages, by name and language: each is made when somebody first asks for it."""

    @property
    def paths(self) -> tuple[str, ...]:
        """Every path that is answered."""
        pages = set(_PAGES.values())
        files = (f"{_FILES}{name}" for name in sorted(self._files) if name not in pages)
        return (*_PAGES, *files)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """A page or a file, or that it has not changed."""
        headers = {hdrs.CACHE_CONTROL: "no-cache"}
        page = _PAGES.get(request.path) or request.path.removeprefix(_FILES)  # only `paths` are routed here
        if page.endswith(".html"):
            found = self._page(page, guard.language(request))
            headers[hdrs.VARY] = hdrs.ACCEPT_LANGUAGE
        else:
            found = self._files[page]
        headers[hdrs.ETAG] = f'"{found.tag}"'
        if any(tag.value == found.tag for tag in request.if_none_match or ()):
            return web.Response(status=304, headers=headers)
        charset = None if found.type == "image/png" else "utf-8"
        return web.Response(body=found.data, content_type=found.type, charset=charset, headers=headers)

    def _page(self, name: str, language: str) -> StaticFile:
        key = name, language
        if key not in self._filled:
            page = filled(self._text(name), language, self._scripts(name))
            self._filled[key] = _file(name, page.encode())
        return self._filled[key]

    def _scripts(self, page: str) -> str:
        """All scripts that a page loads, and those that they load."""
        ours = [name for name in self._files if not name.startswith(_VENDORED)]
        names, scripts = [page], [name for name in ours if name.endswith(".js")]
        for name in names:
            text = self._text(name)
            names += [one for one in scripts if f'"{_FILES}{one}"' in text and one not in names]
        return "".join(self._text(name) for name in names[1:])

    def _text(self, name: str) -> str:
        return self._files[name].data.decode()


def _worker(files: Mapping[str, StaticFile]) -> StaticFile:
    """The worker that keeps copies of these files: another one as soon as one of them is another."""
    version = hashlib.sha256("".join(files[name].tag for name in sorted(files)).encode()).hexdigest()[:16]
    pages = json.dumps([path for path, name in _PAGES.items() if name.endswith(".html")])
    text = files["worker.js"].data.decode().replace("THE_VERSION", version)
    return _file("worker.js", text.replace('["THE_PAGES"]', pages).encode())


def _file(name: str, data: bytes) -> StaticFile:
    type_ = _TYPES[name.rpartition(".")[2]]
    return StaticFile(data=data, type=type_, tag=hashlib.sha256(data).hexdigest()[:16])
