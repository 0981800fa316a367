# SPDX-License-Identifier: Apache-2.0
"""What is said until something can be answered: JSON to a program, to a person a page that asks again."""

from __future__ import annotations

import base64
import hashlib

from aiohttp import hdrs, web

from goodbot.base.answers import JsonResponse
from goodbot.base.busy import GUARDS

_STYLE = (
    ":root{color-scheme:light dark}"
    "body{display:grid;min-height:90vh;place-content:center;text-align:center;font:1.1rem system-ui}"
)
SCRIPT_PATH = "/unready.js"
"""Answered at any time: what the page asks for may come when the daemon has just begun to answer."""
# No `<meta http-equiv="refresh">`: with a one-time code behind the `#` it would only scroll there.
_SCRIPT = "setTimeout(() => location.reload(), 2000);\n"
_PAGE = (
    '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
    '<meta name="viewport" content="width=device-width, initial-scale=1"><title>goodbot</title>'
    f'<style>{_STYLE}</style><script src="{SCRIPT_PATH}"></script></head><body>'
    '<p role="status">goodbot cannot answer yet. This page tries again by itself…</p></body></html>\n'
)


_STYLE_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
_HEADERS = {
    hdrs.RETRY_AFTER: "5",
    **GUARDS,
    "Content-Security-Policy": (
        f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; script-src 'self';"
        " base-uri 'none'; frame-ancestors 'none'"
    ),
}


def not_yet(request: web.BaseRequest, status: str) -> web.Response:
    """A 503 with this status, which names no person and no path."""
    wants_page = "text/html" in request.headers.get(hdrs.ACCEPT, "")
    if request.method == hdrs.METH_GET and wants_page:
        return web.Response(status=503, text=_PAGE, content_type="text/html", headers=_HEADERS)
    error = {"message": f"goodbot cannot answer yet: {status}.", "type": "unavailable"}
    program = {"error": error} if request.path.startswith("/v1/") else {}
    return JsonResponse(503, {"status": status, **program}, {hdrs.RETRY_AFTER: "5"})


def script() -> web.Response:
    """What makes the page try again: a file of its own, for no page here has script in it."""
    return web.Response(text=_SCRIPT, content_type="text/javascript", headers=GUARDS)
