# SPDX-License-Identifier: Apache-2.0
"""A request that is not done, and why."""

from __future__ import annotations

from goodbot.base.errors import GoodbotError


class HttpError(GoodbotError):
    """A request that is answered with this status, a sentence and one word for programs."""

    def __init__(self, status: int, message: str, type_: str = "", *, retry_after: float = 0.0) -> None:
        self.status = status
        self.type = type_ or TYPES.get(status, "invalid_request")
        self.retry_after = retry_after
        super().__init__(message)


TYPES = {
    400: "invalid_request",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    408: "timeout",
    409: "conflict",
    413: "too_large",
    415: "unsupported_media_type",
    422: "unprocessable",
    429: "too_many_requests",
    500: "internal",
    503: "unavailable",
    507: "no_space",
}
"""The `type` of an error by its status."""
