# SPDX-License-Identifier: Apache-2.0
"""`/healthz` and `/readyz` for a supervisor.

`/healthz` is 200 as long as the event loop turns. `/readyz` is 200 once every part works, else 503
with the names of the parts that do not. Both answer GET and HEAD.
"""

from __future__ import annotations

from aiohttp import hdrs, web

from goodbot.base.answers import JsonResponse
from goodbot.daemon.http.http import Parts
from goodbot.daemon.http.readiness import OK, STARTING

PATHS: tuple[str, ...] = ("/healthz", "/readyz")
_METHODS = (hdrs.METH_GET, hdrs.METH_HEAD)


async def answer(request: web.BaseRequest, parts: Parts) -> web.Response:
    """What a supervisor is told at one of `PATHS`."""
    if request.method not in _METHODS:
        return JsonResponse(405, {"status": "GET or HEAD"}, {hdrs.ALLOW: ", ".join(_METHODS)})
    if request.path == "/healthz":
        return JsonResponse(200, {"status": "ok"})
    found = await parts()
    if not found.codes:
        return JsonResponse(503, {"status": STARTING})
    missing = sorted(name for name, code in found.codes.items() if code != OK)
    starts = STARTING in found.codes.values()
    status = STARTING if starts else "unavailable" if missing else "ready"
    said = {"status": status, "missing": missing, **found.codes, **found.told}
    return JsonResponse(503 if missing else 200, said)
