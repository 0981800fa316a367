# SPDX-License-Identifier: Apache-2.0
"""What is asked for is what the code needs, and Discord knows it by the same names."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from goodbot.base.errors import ConnectorError
from goodbot.config.secrets import Secret
from goodbot.testing.clock import VirtualClock
from goodbot_connectors.discord import permissions
from goodbot_connectors.discord.permissions import BITS, INTENTS, ROUTES, WHY
from goodbot_fakes.discord import TOKEN

from tests.connectors.discord import schema
from tests.support import require

discord = require("discord")

from goodbot_connectors.discord.api import Api  # noqa: E402  needs discord.py

SOURCE = Path(permissions.__file__).parent


def test_every_permission_has_a_reason_and_no_other() -> None:
    assert set(WHY) == set(BITS) == set(permissions.needed())
    for why in WHY.values():
        assert 10 < len(why) < 100


def test_bits_are_those_that_discord_py_knows() -> None:
    for name, bit in BITS.items():
        assert getattr(discord.Permissions, name.lower()).flag == bit
    theirs = {
        "GUILD_MESSAGE_REACTIONS": "guild_reactions",
        "DIRECT_MESSAGES": "dm_messages",
        "DIRECT_MESSAGE_REACTIONS": "dm_reactions",
    }
    for name, bit in INTENTS.items():
        assert getattr(discord.Intents, theirs.get(name, name.lower())).flag == bit
    wanted = discord.Intents.none()
    wanted.value = permissions.intents(message_content=True)
    assert wanted.message_content
    assert not wanted.members
    assert not wanted.presences
    wanted.value = permissions.intents(message_content=False)
    assert not wanted.message_content


def test_no_right_over_others_is_asked_for() -> None:
    asked = discord.Permissions(permissions.bits())
    for much in ("administrator", "manage_messages", "manage_guild", "mention_everyone", "kick_members"):
        assert not getattr(asked, much)


def test_the_link_is_one_that_discord_takes() -> None:
    link = urlsplit(permissions.invite("1440000000000000000"))
    asked = {name: value[0] for name, value in parse_qs(link.query).items()}
    assert asked == {
        "client_id": "1440000000000000000",
        "scope": "bot applications.commands",
        "permissions": str(permissions.bits()),
    }


def test_every_route_is_one_of_discord_s() -> None:
    schema.require()
    known = {
        (method.upper(), re.sub(r"\{\w+\}", "{}", path))
        for path, methods in schema.document()["paths"].items()
        for method in methods
    }
    for route in ROUTES:
        method, _, path = route.partition(" ")
        assert (method, re.sub(r"\{\w+\}", "{}", path)) in known, route


def test_every_route_is_used_somewhere() -> None:
    """Else a permission is asked for that nothing needs."""
    source = "".join(path.read_text("utf-8") for path in SOURCE.glob("*.py") if path.name != "permissions.py")
    for route in ROUTES:
        method, _, path = route.partition(" ")
        tail = path.rsplit("}", 1)[-1].strip("/") or path.rsplit("/", 1)[-1]
        assert f'"{method}"' in source, route
        assert tail.split("/")[-1] in source, route


async def test_no_other_route_is_called() -> None:
    api = Api(Secret(TOKEN), VirtualClock(), "http://127.0.0.1:9/api/v10")
    with pytest.raises(ConnectorError, match="invite link"):
        await api.call("DELETE", "/guilds/{guild_id}", guild_id="1")
    await api.close()


async def test_another_address_is_one_client_s_alone() -> None:
    """discord.py keeps its addresses in classes: a second bot in the process must not be led astray."""
    before = discord.http.Route.BASE, discord.gateway.DiscordWebSocket.DEFAULT_GATEWAY
    api = Api(Secret(TOKEN), VirtualClock(), "http://127.0.0.1:9/api/v10")
    with pytest.raises(ConnectorError, match="cannot be reached"):
        await api.open()
    await api.close()
    assert before == (discord.http.Route.BASE, discord.gateway.DiscordWebSocket.DEFAULT_GATEWAY)
