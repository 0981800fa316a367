# SPDX-License-Identifier: Apache-2.0
"""aiohttp's protocol as we want it: it knows the connection that it lies in, and says little."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from aiohttp import web

from goodbot.base.busy import GUARDS

if TYPE_CHECKING:
    from goodbot.base.connection import Connection

logger = logging.getLogger(__name__)

_SAID = {400: "That is no HTTP request.", 504: "That took too long."}


def takes_its_time(request: web.BaseRequest) -> None:
    """This one waits for a model, say, and whoever answers it counts those who do: so its place among the
    many whose answer comes at once (`Crowd.waiting`) is free for another."""
    if isinstance(request.protocol, Handler):
        request.protocol.connection.crowd.waiting.discard(request.protocol.connection)


class JsonResponse(web.Response):
    """One JSON object; the connection ends with it."""

    def __init__(
        self, status: int, body: Mapping[str, Any], headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(
            status=status,
            text=json.dumps(body) + "\n",
            content_type="application/json",
            headers={**GUARDS, **(headers or {})},
        )
        self.force_close()


class Handler(web.RequestHandler):
    """Answers what is no HTTP as briefly as the rest, and does not log what it was."""

    connection: Connection

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        if isinstance(exc, web.RequestPayloadError):
            status = 400  # a body that says of itself what it is not
        if status == 500 and not (self.transport is None and isinstance(exc, ConnectionError)):
            logger.error("a request failed", exc_info=exc)
        if request.writer.output_size > 0:
            raise ConnectionError("part of the answer has been sent already")
        said = _SAID.get(status, "goodbot failed here; its log says why.")
        type_ = "invalid_request" if status < 500 else "internal"
        program = {"error": {"message": said, "type": type_}} if request.path.startswith("/v1/") else {}
        return JsonResponse(status, {"status": "error", **program})

    def log_exception(self, *args: Any, **kw: Any) -> None:
        """A body that fails is no fault of ours: aiohttp meets that once more after the answer."""
        if not isinstance(kw.get("exc_info"), web.HTTPRequestTimeout | web.RequestPayloadError):
            super().log_exception(*args, **kw)
