# SPDX-License-Identifier: Apache-2.0
"""aiohttp's protocols as we want them: they know the connection that they lie in, and say little."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from aiohttp import web

from goodbot.daemon.http.health import JsonResponse

if TYPE_CHECKING:
    from goodbot.daemon.http.connections import Connection

logger = logging.getLogger(__name__)

IDLE_SECONDS = 30.0
"""Between two requests of one connection."""
_SAID = {400: "That is no HTTP request.", 504: "That took too long."}


class ProtocolFactory(web.Server):
    """Makes aiohttp's protocols."""

    def __init__(self, handler: Callable[[web.BaseRequest], Awaitable[Any]], **options: Any) -> None:
        factory = options.pop("request_factory")
        self._options: dict[str, Any] = {"keepalive_timeout": IDLE_SECONDS, **options}
        super().__init__(handler, request_factory=factory, **self._options)

    def __call__(self) -> Handler:
        return Handler(self, loop=asyncio.get_running_loop(), **self._options)


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
        if status == 500 and not (self.transport is None and isinstance(exc, ConnectionError)):
            logger.error("a request failed", exc_info=exc)
        if request.writer.output_size > 0:
            raise ConnectionError("part of the answer has been sent already")
        said = _SAID.get(status, "goodbot failed here; its log says why.")
        type_ = "invalid_request" if status < 500 else "internal"
        program = {"error": {"message": said, "type": type_}} if request.path.startswith("/v1/") else {}
        return JsonResponse(status, {"status": "error", **program})

    def log_exception(self, *args: Any, **kw: Any) -> None:
        """A body that was given up is no fault of ours: aiohttp meets that once more after the answer."""
        if not isinstance(kw.get("exc_info"), web.HTTPRequestTimeout):
            super().log_exception(*args, **kw)
