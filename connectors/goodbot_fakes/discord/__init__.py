# SPDX-License-Identifier: Apache-2.0
"""A Discord on loopback: REST and gateway with servers, people, interactions, limits and faults.

::

    async with FakeDiscord() as discord:
        ada = discord.person("ada")
        lab = discord.channel("lab", discord.guild("The lab", [ada]))
        # a bot connects to discord.api and discord.gateway_url with TOKEN
        ada.says("hello", lab, mention=True)
        [answer] = discord.said(lab)
        ada.reacts(answer, "👍")
        ada.command("rl status")                    # as the bot has registered it
        await discord.gateway.reconnect()           # op 7; `close(4009)`, `invalidate()`, `cut()`

After the API v10, for bots that write text. Without the message content intent it hides what
Discord hides; it refuses what Discord refuses: missing rights, limits of messages and forms, a second
first answer, one after three seconds, a token after fifteen minutes. What it takes and says has the
shapes of Discord's OpenAPI document. One application, one shard; no voice, no files, no webhooks of
servers, no OAuth.
"""

from goodbot_fakes.discord import components, intents, permissions
from goodbot_fakes.discord.driver import DiscordDriver
from goodbot_fakes.discord.errors import DiscordError
from goodbot_fakes.discord.interactions import Interaction
from goodbot_fakes.discord.limits import RateLimits
from goodbot_fakes.discord.people import Person
from goodbot_fakes.discord.records import DM, EPHEMERAL, FORUM, TEXT, THREAD, Channel, Guild, Message
from goodbot_fakes.discord.rest import ApiCall
from goodbot_fakes.discord.server import TOKEN, WRONG_TOKEN, FakeDiscord

__all__ = [
    "DM",
    "EPHEMERAL",
    "FORUM",
    "TEXT",
    "THREAD",
    "TOKEN",
    "WRONG_TOKEN",
    "ApiCall",
    "Channel",
    "DiscordDriver",
    "DiscordError",
    "FakeDiscord",
    "Guild",
    "Interaction",
    "Message",
    "Person",
    "RateLimits",
    "components",
    "intents",
    "permissions",
]
