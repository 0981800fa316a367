# SPDX-License-Identifier: Apache-2.0
"""The page, and what it may ask: opened once by the code in its address, then by the key that it got.

An answer can be lost on its way: the code gives another key until one of them is shown. A page can be lost
later: then the terminal shows another code, and its key takes the place of the one before.

Import it only to listen: aiohttp.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from collections.abc import Awaitable, Callable, Mapping
from importlib import resources
from typing import Any, cast

from aiohttp import hdrs, web

from goodbot.api import texts
from goodbot.base import own_page
from goodbot.cli.browser.stage import PageAnswer, Stage

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

WORDS = (
    *("setup_page_title", "setup_page_back", "setup_page_leave", "setup_page_sure", "setup_page_stay"),
    *("setup_page_continue", "setup_page_yes", "setup_page_no", "setup_page_working", "setup_page_lost"),
    *("setup_page_left", "setup_page_done", "setup_page_starts", "setup_page_failed", "setup_page_typed"),
    *("setup_page_hidden", "setup_page_copy", "setup_page_copied", "setup_page_qr"),
    *("setup_page_step", "setup_page_drawing"),
)
"""What the page says by itself."""
_LONGEST = 64 * 1024
"""Bytes of what the page sends: a token has a few hundred."""
_TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
_PAGE = "setup.html"


class SetupSite:
    """Hands one set-up to one browser."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self.code = secrets.token_urlsafe(24)
        """In the address behind a `#`, which browsers do not send; good once."""
        self._used: list[str] = []
        """Codes that were good before it."""
        self._key = ""
        """What the page that came with the code shows from then on; empty: none has come."""
        self._shown = False
        """Whether it has shown it: until then nobody knows that it got it."""
        self._before = ""
        """The key of the page before, which goes on until the next one is there."""
        folder = resources.files("goodbot.cli.browser") / "pages"
        self._files = {one.name: one.read_bytes() for one in folder.iterdir() if one.is_file()}

    def renew(self) -> bool:
        """Have another code take the place of one that was used; False: nobody has come by the last one yet.

        In the thread in which requests are answered.
        """
        if not self._shown:
            return False
        self._used.append(self.code)
        self.code = secrets.token_urlsafe(24)
        self._before, self._key, self._shown = self._key, "", False
        return True

    def routes(self) -> list[web.AbstractRouteDef]:
        """All that is answered."""
        files = [web.get(f"/files/{name}", _guarded(self._file)) for name in sorted(self._files)]
        return [
            web.get("/", _guarded(self._file)),
            *files,
            web.post("/api/begin", _guarded(self._begin)),
            web.get("/api/screen", _guarded(self._screen)),
            web.post("/api/answer", _guarded(self._take)),
        ]

    async def _file(self, request: web.Request) -> web.StreamResponse:
        name = _PAGE if request.path == "/" else request.path.removeprefix("/files/")
        data = self._files[name]  # only their own names are routed here
        tag = f'"{hashlib.sha256(data).hexdigest()[:16]}"'
        headers = {hdrs.ETAG: tag, hdrs.CACHE_CONTROL: "no-store"}
        return web.Response(
            body=data, content_type=_TYPES[name.rpartition(".")[2]], charset="utf-8", headers=headers
        )

    async def _begin(self, request: web.Request) -> web.StreamResponse:
        """Take the code, until the key has arrived; the key, and the words of the page."""
        language = _language(request)
        body = await _body(request)
        code = body.get("code")
        used = isinstance(code, str) and any(_same(code, one) for one in self._used)
        if not isinstance(code, str) or not (used or _same(code, self.code)):
            return _answer({"error": texts.say("setup_page_wrong", language)}, 403)
        if used or self._shown:
            return _answer({"error": texts.say("setup_page_used", language)}, 409)
        self._key = secrets.token_urlsafe(32)
        self._stage.begin(language)
        # With its places: the page fills them in.
        catalogue = texts.catalogue(language or texts.ENGLISH)
        words = {name.removeprefix("setup_page_"): catalogue[name] for name in WORDS}
        return _answer({"key": self._key, "language": language or texts.ENGLISH, "words": words})

    async def _screen(self, request: web.Request) -> web.StreamResponse:
        self._require_key(request)
        return _answer(self._stage.view())

    async def _take(self, request: web.Request) -> web.StreamResponse:
        self._require_key(request)
        body = await _body(request)
        match body:
            case {"number": int(number), "do": "answer", "value": str(value)}:
                taken = self._stage.take(number, PageAnswer(do="answer", value=value))
            case {"number": int(number), "do": "back"}:
                taken = self._stage.take(number, PageAnswer(do="back"))
            case {"number": int(number), "do": "leave"}:
                taken = self._stage.take(number, PageAnswer(do="leave"))
            case _:
                raise web.HTTPBadRequest
        return _answer({"taken": taken}, 200 if taken else 409)

    def _require_key(self, request: web.Request) -> None:
        given = request.headers.get(hdrs.AUTHORIZATION, "")
        if self._key and _same(given, f"Bearer {self._key}"):
            self._shown, self._before = True, ""
        elif not self._before or not _same(given, f"Bearer {self._before}"):
            raise web.HTTPUnauthorized


def _guarded(handler: Handler) -> Handler:
    """The handler for our own page alone, with our headers. `Host` is one of our names: the server looked."""

    async def wrapped(request: web.Request) -> web.StreamResponse:
        try:
            data = request.path.startswith("/api/")
            foreign = request.headers.get("Sec-Fetch-Site", "none") not in own_page.SITES
            origin = request.headers.get(hdrs.ORIGIN, "")
            if (data and foreign) or (
                request.method == hdrs.METH_POST and not own_page.is_ours(origin, request.host)
            ):
                raise web.HTTPForbidden
            response = await handler(request)
        except web.HTTPException as error:
            response = _answer({"error": error.reason}, error.status)
        response.headers.update(own_page.HEADERS)
        return response

    return wrapped


def _answer(body: Mapping[str, Any], status: int = 200) -> web.Response:
    return web.json_response(body, status=status, headers={hdrs.CACHE_CONTROL: "no-store"})


async def _body(request: web.Request) -> Mapping[str, Any]:
    """The JSON object of a POST. Raises HTTPException."""
    if request.content_type != "application/json":
        raise web.HTTPUnsupportedMediaType
    if (request.content_length or _LONGEST + 1) > _LONGEST:
        raise web.HTTPRequestEntityTooLarge(_LONGEST, request.content_length or 0)
    try:
        parsed: object = json.loads(await request.read())
    except (ValueError, RecursionError):
        parsed = None
    if not isinstance(parsed, dict):
        raise web.HTTPBadRequest
    return cast("Mapping[str, Any]", parsed)


def _same(given: str, own: str) -> bool:
    return hmac.compare_digest(given.encode(errors="surrogatepass"), own.encode())


def _language(request: web.Request) -> str:
    """The first of the browser's languages that there are texts in."""
    listed = request.headers.get("Accept-Language", "").split(",", 20)[:20]
    return texts.language_of(*(one.partition(";")[0].strip() for one in listed))
