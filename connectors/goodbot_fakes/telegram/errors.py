# SPDX-License-Identifier: Apache-2.0
"""What Telegram answers when it will not: codes and sentences as its server writes them."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


class BotApiError(Exception):
    """A call that fails. `parameters` is a `ResponseParameters` of the Bot API."""

    def __init__(self, code: int, description: str, **parameters: Any) -> None:
        super().__init__(description)
        self.code = code
        self.parameters = parameters

    def body(self) -> Json:
        """The JSON of the answer."""
        body: Json = {"ok": False, "error_code": self.code, "description": str(self)}
        return body | {"parameters": self.parameters} if self.parameters else body


def bad_request(what: str, **parameters: Any) -> BotApiError:
    """400: the call makes no sense as it is."""
    return BotApiError(400, f"Bad Request: {what}", **parameters)


def forbidden(what: str) -> BotApiError:
    """403: the bot may not write there."""
    return BotApiError(403, f"Forbidden: {what}")


def conflict(what: str) -> BotApiError:
    """409: somebody else receives this bot's updates."""
    return BotApiError(409, f"Conflict: {what}")


def flood(seconds: int) -> BotApiError:
    """429: nothing was done, and nothing will be for so many seconds."""
    return BotApiError(429, f"Too Many Requests: retry after {seconds}", retry_after=seconds)


UNAUTHORIZED = BotApiError(401, "Unauthorized")
NOT_FOUND = BotApiError(404, "Not Found")
NOT_MODIFIED = (
    "message is not modified: specified new message content and reply markup are exactly the same "
    "as a current content and reply markup of the message"
)
OLD_QUERY = "query is too old and response timeout expired or query ID is invalid"
TWO_POLLERS = "terminated by other getUpdates request; make sure that only one bot instance is running"
WEBHOOK_ACTIVE = (
    "can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first"
)
