# SPDX-License-Identifier: Apache-2.0
"""What Discord answers when it refuses: HTTP status, JSON error code and sentence.

discord.com/developers/docs/topics/opcodes-and-status-codes#json-json-error-codes
"""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


class DiscordError(Exception):
    """A request that fails."""

    def __init__(self, status: int, code: int, message: str, **more: Any) -> None:
        super().__init__(f"{code}: {message}")
        self.status = status
        self.code = code
        self.body: Json = {"message": message, "code": code, **more}


def unknown(what: str) -> DiscordError:
    """404: there is no such thing, or none that the bot may know of."""
    codes = {
        "Application": 10002,
        "Channel": 10003,
        "Guild": 10004,
        "Message": 10008,
        "User": 10013,
        "Emoji": 10014,
        "Webhook": 10015,
        "Member": 10007,
        "Interaction": 10062,
        "application command": 10063,
    }
    return DiscordError(404, codes[what], f"Unknown {what}")


def unauthorized() -> DiscordError:
    """401: no token, or a wrong one."""
    return DiscordError(401, 0, "401: Unauthorized")


def missing_access() -> DiscordError:
    """403: the bot does not see that channel."""
    return DiscordError(403, 50001, "Missing Access")


def missing_permissions() -> DiscordError:
    """403: the bot sees it, and may not do that there."""
    return DiscordError(403, 50013, "Missing Permissions")


def invalid_form(field: str, code: str, message: str) -> DiscordError:
    """400: a field of the body breaks a limit; `field` with dots: `components.0.components`."""
    errors: Json = {"_errors": [{"code": code, "message": message}]}
    for name in reversed(field.split(".")):
        errors = {name: errors}
    return DiscordError(400, 50035, "Invalid Form Body", errors=errors)


def too_long(field: str, limit: int) -> DiscordError:
    """400: more characters than `limit`."""
    return invalid_form(field, "BASE_TYPE_MAX_LENGTH", f"Must be {limit} or fewer in length.")
