# SPDX-License-Identifier: Apache-2.0
"""What every request is held to, and what every answer carries."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NoReturn, cast

from aiohttp import hdrs, web
from goodbot.api.texts import language_of
from goodbot.base import own_page
from goodbot.base.errors import GoodbotError, RetriableError, StoreError, UsageError

from goodbot_connectors.kit.bridge.refused import HttpError
from goodbot_connectors.kit.fields import Json

logger = logging.getLogger(__name__)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

CONTENT_POLICY, HEADERS = own_page.CONTENT_POLICY, own_page.HEADERS
_STORE_SECONDS = 1.0
"""Until what could not be stored is worth another attempt."""
LARGEST = 256 * 1024
"""Bytes of what a page sends: the longest message, each of its characters escaped."""


def guarded(handler: Handler) -> Handler:
    """The handler with our headers, and every failure as a sentence in JSON."""

    async def wrapped(request: web.Request) -> web.StreamResponse:
        try:
            if request.headers.get("Sec-Fetch-Site", "none") not in own_page.SITES and is_data(request):
                refuse_foreign()
            response = await handler(request)
        except HttpError as error:
            response = _refused(error, error.status, error.retry_after)
        except UsageError as error:
            response = _refused(error, 400)
        except RetriableError as error:
            response = _refused(error, 503, error.retry_after)
        except StoreError as error:
            response = _refused(error, 503, _STORE_SECONDS)
        except web.HTTPException:
            raise
        except GoodbotError as error:
            logger.error("web: %s", error)
            response = _refused(error, 500)
        if not response.prepared:
            response.headers.update(HEADERS)
        return response

    return wrapped


def answer(body: Mapping[str, Any], status: int = 200) -> web.Response:
    """One JSON object that no cache keeps."""
    return web.json_response(body, status=status, headers={hdrs.CACHE_CONTROL: "no-store"})


def _refused(error: GoodbotError, status: int, seconds: float = 0.0) -> web.Response:
    """Why not, and how long to wait until the next attempt, where that helps."""
    response = answer({"error": str(error)}, status)
    if seconds:
        response.headers[hdrs.RETRY_AFTER] = str(math.ceil(seconds))
    return response


def is_data(request: web.Request) -> bool:
    """Whether it is no page that anybody may link to."""
    return request.path.startswith("/api/")


def same_origin(request: web.Request, address: str) -> None:
    """Refuse what another page sent. `Host` is one of our names: the core has looked.

    Raises HttpError.
    """
    if not own_page.is_ours(request.headers.get(hdrs.ORIGIN, ""), request.host, address):
        refuse_foreign()


def refuse_foreign() -> NoReturn:
    """Raises HttpError."""
    raise HttpError(403, "That did not come from goodbot's own page.")


async def body(request: web.Request) -> Json:
    """The JSON object of a POST. Raises HttpError."""
    if request.content_type != "application/json":
        raise HttpError(415, "Send JSON, with the content type application/json.")
    if (request.content_length or 0) > LARGEST:
        raise HttpError(413, "That is too long.")
    data = await request.content.read(LARGEST + 1)
    while not request.content.at_eof() and len(data) <= LARGEST:
        data += await request.content.read(LARGEST + 1 - len(data))
    if len(data) > LARGEST:
        raise HttpError(413, "That is too long.")
    try:
        parsed: object = json.loads(data)
    except (ValueError, RecursionError):
        parsed = None
    if not isinstance(parsed, dict):
        raise HttpError(400, "That is no JSON object.")
    return cast("Json", parsed)


def language(request: web.Request) -> str:
    """The first of the browser's languages that there are texts in; browsers put the dearest first."""
    listed = request.headers.get("Accept-Language", "").split(",", 20)[:20]
    return language_of(*(one.partition(";")[0].strip() for one in listed))


def cookie(request: web.Request) -> str:
    """The id of a browser's session. Its cookie's name has the port: browsers send cookies to every port."""
    return request.cookies.get(cookie_name(request), "")


def cookie_name(request: web.Request) -> str:
    """What the cookie of a session is called."""
    _, colon, port = request.host.rpartition(":")
    return f"goodbot-{port}" if colon and port.isdecimal() else "goodbot"
