# SPDX-License-Identifier: Apache-2.0
"""Errors in the shape that each API's own clients read."""

from __future__ import annotations

import json
import math
from typing import Any

from aiohttp import hdrs, web

from goodbot_connectors.api.proxy.config import ANTHROPIC, OPENAI
from goodbot_connectors.kit.bridge.body import HttpError
from goodbot_connectors.kit.bridge.guard import Refusal

_ANTHROPIC_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    415: "invalid_request_error",
    429: "rate_limit_error",
}
_OPENAI_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "invalid_request_error",
    415: "invalid_request_error",
    429: "rate_limit_error",
}


def told(dialect: str, status: int, message: str) -> dict[str, Any]:
    """The JSON of an error."""
    if dialect == ANTHROPIC:
        kind = _ANTHROPIC_TYPES.get(status, "api_error")
        return {"type": "error", "error": {"type": kind, "message": message}}
    kind = _OPENAI_TYPES.get(status, "server_error")
    return {"error": {"message": message, "type": kind, "param": None, "code": None}}


def refusal(dialect: str) -> Refusal:
    """What the guard answers with in place of its own errors."""

    def shape(error: HttpError) -> web.StreamResponse:
        response = web.json_response(
            told(dialect, error.status, str(error)),
            status=error.status,
            headers={hdrs.CACHE_CONTROL: "no-store"},
        )
        if error.retry_after:
            response.headers[hdrs.RETRY_AFTER] = str(math.ceil(error.retry_after))
        return response

    return shape


def event(path: str, message: str, number: int = 0) -> bytes:
    """An error in the middle of a stream, as clients of the API at `path` know it.

    `number`: of the event, where the API counts them.
    """
    if path == "/v1/responses":
        about = {"code": "server_error", "message": message, "param": None}
        body: dict[str, Any] = {"type": "error", **about, "sequence_number": number}
    else:
        body = told(ANTHROPIC if path == "/v1/messages" else OPENAI, 500, message)
    name = "event: error\n" if body.get("type") == "error" else ""
    return f"{name}data: {json.dumps(body)}\n\n".encode()
