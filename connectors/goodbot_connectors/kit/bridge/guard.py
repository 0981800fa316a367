# SPDX-License-Identifier: Apache-2.0
"""What every request of a program is held to, and how it is refused.

A token in `X-Goodbot-Token`, `Authorization: Bearer` or `x-api-key`, never in the address. Nothing
that a web page could send gets through: pages cannot set these headers without asking first, and
nobody here answers such a question; what says that it comes from another page is refused before that.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NoReturn
from urllib.parse import urlsplit

from aiohttp import hdrs, web
from goodbot.api.sentences import ended
from goodbot.base.errors import GoodbotError, RetriableError, StoreError, StoreFullError, UsageError

from goodbot_connectors.kit.bridge.body import LARGEST, HttpError, json_object
from goodbot_connectors.kit.bridge.clients import ApiClient, Clients
from goodbot_connectors.kit.bridge.encoded import sized

__all__ = ["Handler", "HttpError", "answer", "guarded", "json_object", "refusal", "token_of"]

logger = logging.getLogger(__name__)

Handler = Callable[[web.Request, ApiClient], Awaitable[web.StreamResponse]]
Refusal = Callable[[HttpError], web.StreamResponse]

OWN_HEADER = "X-Goodbot-Token"
"""For clients whose `Authorization` is for a server that we pass their requests on to."""
_SITES = ("same-origin", "none")
_HEADERS = {hdrs.CACHE_CONTROL: "no-store", "X-Content-Type-Options": "nosniff"}
_BEARER = "bearer "


def guarded(
    handler: Handler, clients: Clients, *, largest: int = LARGEST, refused: Refusal | None = None
) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    """The handler for those who have a token; all else, and every failure, is a sentence in JSON.

    `largest`: bytes of a body, if it says how long it is; `json_object` counts what comes.
    `refused` makes the answer to a refusal where another program expects another shape (`refusal`).
    """
    shape = refused or refusal

    async def wrapped(request: web.Request) -> web.StreamResponse:
        try:
            _from_no_page(request)
            client = _client(request, clients)
            if (request.content_length or 0) > largest:
                raise HttpError(413, f"The body is too large: at most {sized(largest)}.")
            return await handler(request, client)
        except HttpError as error:
            return shape(error)
        except UsageError as error:
            return shape(HttpError(400, ended(str(error))))
        except StoreFullError as error:
            return shape(HttpError(507, ended(str(error))))
        except RetriableError as error:
            return shape(HttpError(503, ended(str(error)), retry_after=error.retry_after))
        except StoreError as error:
            return shape(HttpError(503, ended(str(error)), retry_after=1.0))
        except web.HTTPRequestTimeout:
            return shape(HttpError(408, "The rest of the body never came: send it again."))
        except GoodbotError as error:
            logger.error("%s: %s", request.path, error)
            return shape(HttpError(500, ended(str(error))))

    return wrapped


def answer(body: Mapping[str, Any], status: int = 200) -> web.Response:
    """One JSON object that no cache keeps."""
    return web.json_response(body, status=status, headers=_HEADERS)


def refusal(error: HttpError) -> web.Response:
    """`{"error": {"message": "A sentence.", "type": "a_word"}}` with the error's status."""
    response = answer({"error": {"message": str(error), "type": error.type}}, error.status)
    if error.status == 401:
        response.headers[hdrs.WWW_AUTHENTICATE] = "Bearer"
    if error.retry_after:
        response.headers[hdrs.RETRY_AFTER] = str(math.ceil(error.retry_after))
    return response


def token_of(request: web.BaseRequest) -> str:
    """The token that came with a request, empty for none. Raises HttpError (400) for two.

    Beside an `X-Goodbot-Token` the other headers are not looked at: they are for somebody behind us.
    """
    own = request.headers.getall(OWN_HEADER, [])
    if len(own) > 1:
        raise HttpError(400, "Send one token, in one header.")
    if own:
        return own[0].strip()
    given = request.headers.getall(hdrs.AUTHORIZATION, [])
    keys = request.headers.getall("x-api-key", [])
    if len(given) > 1 or len(keys) > 1:
        raise HttpError(400, "Send one token, in one header.")
    bearer = given[0] if given else ""
    token = bearer[len(_BEARER) :].strip() if bearer.lower().startswith(_BEARER) else ""
    key = keys[0].strip() if keys else ""
    if token and key and token != key:
        raise HttpError(400, "Authorization and x-api-key hold two tokens: send one.")
    return token or key


def _from_no_page(request: web.BaseRequest) -> None:
    """Refuse what a browser says another page has sent. `Host` is ours: the core has looked.

    Raises HttpError.
    """
    headers = request.headers
    if headers.get("Sec-Fetch-Site", "none") not in _SITES:
        _foreign()
    for origin in headers.getall(hdrs.ORIGIN, []):
        try:
            parts = urlsplit(origin)
        except ValueError:
            _foreign()
        exact = parts.scheme in ("http", "https") and origin == f"{parts.scheme}://{parts.netloc}"
        if not exact or parts.netloc != request.host:
            _foreign()


def _foreign() -> NoReturn:
    raise HttpError(403, "That comes from a web page that is not goodbot's own.")


def _client(request: web.BaseRequest, clients: Clients) -> ApiClient:
    """Who asks. Raises HttpError."""
    token = token_of(request)
    if not token:
        raise HttpError(401, "Send a token: `Authorization: Bearer gb_…` (`goodbot connect api` makes one).")
    client = clients.who(token)
    if client is not None:
        return client
    if wait := clients.wrong():
        raise HttpError(429, "Too many wrong tokens: wait a minute.", retry_after=wait)
    raise HttpError(
        401, "That token opens nothing: it was replaced or removed. `goodbot api token list` says which hold."
    )
