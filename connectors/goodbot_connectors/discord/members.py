# SPDX-License-Identifier: Apache-2.0
"""The people with a role on a server, for `rater_groups`."""

from __future__ import annotations

from typing import Any

from goodbot.base.errors import ConnectorError

from goodbot_connectors.discord.api import Api, RefusedError
from goodbot_connectors.discord.snowflake import identifier
from goodbot_connectors.kit.fields import strings, sub

_PAGE, _PAGES = 1000, 100
_MISSING_ACCESS = 50001


async def with_role(api: Api, group: str) -> frozenset[str]:
    """The user ids. Raises ConnectorError with what to do where Discord does not tell."""
    server, _, role = group.partition("/")
    if not identifier(server) or not identifier(role):
        raise ConnectorError(
            f'a role is named by ids, "SERVER/ROLE", not {group[:40]!r}: switch Developer Mode on in '
            "Discord, then right-click the server and the role, Copy ID"
        )
    found: set[str] = set()
    query: dict[str, Any] = {"limit": _PAGE, "after": "0"}
    for _ in range(_PAGES):
        try:
            page = await api.list("GET", "/guilds/{guild_id}/members", query=query, guild_id=server)
        except RefusedError as error:
            if error.code != _MISSING_ACCESS:
                raise
            raise ConnectorError(
                "Discord does not tell who has a role: switch the Server Members intent on at "
                "discord.com/developers/applications, Bot, or name the raters by their ids"
            ) from None
        people = [(one, sub(one, "user")) for one in page]
        found |= {
            identifier(user.get("id"))
            for one, user in people
            if role in strings(one, "roles") and not user.get("bot")
        }
        if len(page) < _PAGE:
            break
        query["after"] = identifier(people[-1][1].get("id"))
    return frozenset(found - {""})
