"""Setting goodbot up on Telegram, looking at it, and leaving it."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Sequence
from email.utils import parsedate_to_datetime

from goodbot.clock import Clock, SystemClock
from goodbot.setup import Check, CheckState, ConnectorSetup, Identity

from goodbot_connectors.telegram.api import COMMANDS, Api
from goodbot_connectors.telegram.config import TOKEN, TelegramSettings

_LONGEST = 100
_HASH = range(30, 51)
"""Characters after the colon; today's tokens have 35."""
_SKEW = 60.0
_ASCII_WORD = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")


class TelegramSetup(ConnectorSetup):
    """One bot account."""

    title = "Telegram"
    guide = (
        "1. Open https://t.me/BotFather and send /newbot.\n"
        "2. Choose a name, then a username that ends in `bot`.\n"
        "3. BotFather answers with a token such as 123456789:AAE… Copy it; it is a password."
    )
    settings: TelegramSettings
    clock: Clock = SystemClock()

    @classmethod
    def malformed(cls, name: str, value: str) -> str:
        """What a token cannot be. The value itself is never in the sentence."""
        if not value.strip():
            return "the token is empty"
        if any(character.isspace() for character in value.strip()):
            return "there are spaces in it: copy the token alone, without BotFather's words"
        number, colon, rest = value.strip()[:_LONGEST].partition(":")
        if not colon or not (number.isascii() and number.isdecimal()):
            return "that is no token: one starts with a number and a colon, like 123456789:AAE…"
        if not set(rest) <= _ASCII_WORD:
            return "it holds characters that no token has: copy it again"
        if len(rest) not in _HASH or len(value.strip()) > _LONGEST:
            return f"it was not copied whole: {len(rest)} characters after the colon, not about 35"
        return ""

    async def identify(self) -> Identity:
        """getMe."""
        async with self._open() as (_, me):
            return me

    async def examine(self) -> Sequence[Check]:
        """Who else reads its updates, what it sees in groups, and whether our clock fits."""
        async with self._open() as (api, _):
            webhook = await api.webhook()
            found = [_updates(webhook), _groups(api.reads_groups)]
            skew = self._skew(api.date)
        if abs(skew) > _SKEW:
            text = (
                f"this machine is {abs(skew):.0f} s {'ahead of' if skew > 0 else 'behind'} Telegram"
            )
            fix = "set the clock from the network: timedatectl set-ntp true"
            found.append(Check(part="clock", state=CheckState.WARN, text=text, fix=fix))
        return found

    async def remove(self, *, dry_run: bool) -> Sequence[str]:
        """Take back the command list, if it is still ours."""
        async with self._open() as (api, me):
            if await api.commands() != COMMANDS:
                return ()
            if not dry_run:
                await api.delete_commands()
        return (f"the command /{COMMANDS[0][0]} of {me.name}",)

    @contextlib.asynccontextmanager
    async def _open(self) -> AsyncGenerator[tuple[Api, Identity]]:
        api = Api(self.secrets.get(TOKEN), self.settings.api_base)
        try:
            me = await api.open()
            name = me.username
            yield api, Identity(account=me.id, name=f"@{name}", link=f"https://t.me/{name}")
        finally:
            await api.close()

    def _skew(self, date: str) -> float:
        """Seconds that our clock is ahead of Telegram's; 0 if it did not say."""
        try:
            return self.clock.now() - parsedate_to_datetime(date).timestamp()
        except ValueError:
            return 0.0


def _updates(webhook: str) -> Check:
    part = "telegram updates"
    if not webhook:
        return Check(part=part, state=CheckState.OK, text="no webhook is in the way")
    host = webhook.partition("://")[2].partition("/")[0].rpartition("@")[2]
    return Check(
        part=part, state=CheckState.FAIL,
        text=f"another program gets this bot's messages by a webhook at {host}; goodbot gets none",
        fix="end that program, then open https://api.telegram.org/bot<token>/deleteWebhook once",
    )  # fmt: skip


def _groups(reads_all: bool) -> Check:
    part = "telegram groups"
    if reads_all:
        return Check(
            part=part, state=CheckState.WARN,
            text="Telegram sends it all that is said in groups; goodbot needs only what is meant for it",
            fix="tell @BotFather: /setprivacy, your bot, Enable",
        )  # fmt: skip
    text = (
        "it sees what is meant for it; reactions reach it where it is an administrator of the group"
    )
    return Check(part=part, state=CheckState.OK, text=text)
