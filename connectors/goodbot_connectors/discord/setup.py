# SPDX-License-Identifier: Apache-2.0
"""Setting goodbot up on Discord, looking at it, and leaving it."""

from __future__ import annotations

import base64
import binascii
import contextlib
from collections.abc import AsyncGenerator, Sequence

from goodbot.api.setup import (
    Check,
    CheckState,
    ConnectorSetup,
    Identity,
    Manifest,
    Question,
    Sketch,
    fail,
    ok,
    warn,
)
from goodbot.api.texts import explained, pauses, say
from goodbot.api.texts.terminal import here, phrase, rephrased
from goodbot.base.clock import Clock, SystemClock
from goodbot.base.errors import ConnectorError, FatalConnectorError, RetriableError

from goodbot_connectors.discord import commands, permissions
from goodbot_connectors.discord.access import granted
from goodbot_connectors.discord.api import Api
from goodbot_connectors.discord.config import TOKEN, DiscordSettings
from goodbot_connectors.discord.identity import BotIdentity as Account
from goodbot_connectors.discord.snowflake import identifier
from goodbot_connectors.kit.dates import Dates
from goodbot_connectors.kit.fields import sub

_REST, _GATEWAY = "https://discord.com/api/v10", "wss://gateway.discord.gg/"
_PORTAL = "https://discord.com/developers/applications"
_INTENT = "discord.com/developers/applications, Bot, Privileged Gateway Intents, Message Content"
_CONTENT_FLAGS = 1 << 18 | 1 << 19
"""The application's flags for the Message Content intent: granted, or for up to 100 servers."""
_MENU = ("Applications", "General Information", "Installation", "OAuth2", "Bot")
"""Entries of its pages: of the portal, and of one application."""
_LONGEST = 200
_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-=")
_FEW_SESSIONS = 50


class DiscordSetup(ConnectorSetup):
    """One bot account."""

    title = "Discord"
    guide = say("guide_discord")
    sketches = (
        Sketch(line=1, address="discord.com/developers", menu=_MENU[:1], here=_MENU[0], press="New App"),
        Sketch(
            line=2,
            address="discord.com/developers",
            menu=_MENU[1:],
            here="Bot",
            field="Token",
            value="MTA0…",
            press="Reset Token",
        ),
    )
    questions = (Question(key="message_content", text=say("ask_content"), optional=True),)
    settings: DiscordSettings
    clock: Clock = SystemClock()

    @classmethod
    def malformed(cls, name: str, value: str) -> str:
        """What a token cannot be. The value itself is never in the sentence."""
        value = value.strip()
        if not value:
            return phrase("tok_where", place=f"{_PORTAL}, Bot, Reset Token")
        if value.startswith("Bot "):
            return phrase("dc_word_bot")
        if not set(value) <= _CHARACTERS or len(value) > _LONGEST:
            return phrase("tok_part")
        if value.isdecimal():
            return phrase("dc_id")
        if len(value) == 32 and value.isalnum():
            return phrase("dc_secret")
        if value.count(".") != 2 or not _account(value):
            return phrase("dc_parts")
        return ""

    @classmethod
    def wrong_user_id(cls, value: str) -> str:
        """A person's id, which their name is not."""
        if identifier(value) and len(value) >= 15:
            return ""
        return phrase("dc_user")

    @classmethod
    def called(cls, name: str) -> str:
        """What Discord's pages call it."""
        return "Bot token"

    def manifest(self) -> Manifest:
        """The invite link, and what it asks for; with a token it names its application."""
        application = _account(self.secrets.get(TOKEN).reveal()) or "YOUR_APPLICATION_ID"
        link = permissions.invite(application)
        lines = [link, "", phrase("dc_asks", bits=permissions.bits())]
        lines += [f"  {_purpose(name)}" for name in permissions.needed()]
        return Manifest(
            text="\n".join(lines) + "\n",
            file="",
            permissions=permissions.explained(),
            link=link,
            of_account=True,
        )

    def addresses(self) -> Sequence[str]:
        """Where Discord answers."""
        return self.settings.api_base or _REST, self.settings.gateway or _GATEWAY

    async def identify(self) -> Identity:
        """Whose token it is, and where one writes to it."""
        async with self._open() as (_, me):
            link = f"https://discord.com/users/{me.user}"
            return Identity(account=me.user, name=f"@{me.name}", link=link)

    async def examine(self) -> Sequence[Check]:
        """The intents, the commands, the gateway, and what the bot may in the channels where it is on."""
        async with self._open() as (api, me):
            checks = [self._content(me), await _commands(api, me), await _sessions(api)]
            checks += [await self._channel(api, me, channel) for channel in self.channels]
        return [*checks, *self._dates.checks(self.title)]

    async def remove(self, *, dry_run: bool) -> Sequence[str]:
        """The commands; the bot itself leaves a server when somebody removes it there."""
        async with self._open() as (api, me):
            ids = {"application_id": me.application}
            there = await api.list("GET", commands.PATH, **ids)
            if not there:
                return ()
            if not dry_run:
                await api.call("PUT", commands.PATH, body=[], **ids)
            return (phrase("dc_commands_left", count=len(there)),)

    @contextlib.asynccontextmanager
    async def _open(self) -> AsyncGenerator[tuple[Api, Account]]:
        self._dates = Dates(self.clock)
        api = Api(self.secrets.get(TOKEN), self.clock, self.settings.api_base, self._dates)
        try:
            yield api, await api.open()
        finally:
            await api.close()

    def _content(self, me: Account) -> Check:
        part, on = "discord intents", bool(me.flags & _CONTENT_FLAGS)
        if self.settings.message_content and not on:
            return fail(part, phrase("dc_no_intent"), phrase("dc_no_intent_fix", place=_INTENT))
        if self.settings.message_content:
            return ok(part, phrase("dc_reads"))
        fix = phrase("dc_wish_set") if on else phrase("dc_wish", place=_INTENT)
        return Check(part=part, state=CheckState.OK, text=phrase("dc_without"), fix=fix)

    async def _channel(self, api: Api, me: Account, channel: str) -> Check:
        """What the bot may in one channel where it is switched on."""
        part = "discord permissions"
        try:
            missing = permissions.missing(await granted(api, me.user, channel))
        except (RetriableError, FatalConnectorError):
            raise
        except ConnectorError:
            fix = phrase("dc_unseen_fix", link=permissions.invite(me.application))
            return fail(part, phrase("dc_unseen", channel=channel), fix)
        if missing:
            fix = phrase("dc_lacks_fix", link=permissions.invite(me.application))
            text = phrase("dc_lacks", channel=channel, what=pauses(here(), *map(_purpose, missing)))
            return fail(part, text, fix)
        return ok(part, phrase("dc_has", channel=channel))


def _purpose(permission: str) -> str:
    """A permission and what it is for."""
    return explained(permission, rephrased(permissions.WHY[permission]), here())


async def _commands(api: Api, me: Account) -> Check:
    part = "discord commands"
    there = await api.list("GET", commands.PATH, application_id=me.application)
    missing = commands.missing(there)
    if len(missing) == len(commands.commands()):  # an application that goodbot never ran for
        return ok(part, phrase("dc_later"))
    if missing:
        return warn(part, phrase("dc_missing", names=", ".join(missing)), phrase("dc_missing_fix"))
    return ok(part, phrase("dc_there", command=f"/{commands.SLASH}"))


async def _sessions(api: Api) -> Check:
    """Discord resets the token of a bot that connects more than a thousand times a day."""
    part = "discord gateway"
    limit = sub(await api.call("GET", "/gateway/bot"), "session_start_limit")
    remaining = limit.get("remaining")
    if isinstance(remaining, int) and remaining < _FEW_SESSIONS:
        return warn(part, phrase("dc_sessions", count=remaining), phrase("dc_sessions_fix"))
    return ok(part, phrase("dc_gateway"))


def _account(token: str) -> str:
    """The bot's id, which is the first part of its token; empty for none."""
    part = token.strip().partition(".")[0]
    try:
        return identifier(base64.b64decode(part + "=" * (-len(part) % 4)).decode("ascii"))
    except (ValueError, binascii.Error):
        return ""
