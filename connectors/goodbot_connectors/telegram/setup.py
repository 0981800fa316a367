# SPDX-License-Identifier: Apache-2.0
"""Setting goodbot up on Telegram, looking at it, and leaving it."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Sequence

from goodbot.api.setup import Check, ConnectorSetup, Identity, Sketch, fail, ok, warn
from goodbot.api.texts import say
from goodbot.api.texts.terminal import phrase
from goodbot.base.clock import Clock, SystemClock
from telegram import WebhookInfo

from goodbot_connectors.kit.dates import Dates
from goodbot_connectors.telegram.api import Api
from goodbot_connectors.telegram.client import BASE, RefusedError
from goodbot_connectors.telegram.config import TOKEN, WEBHOOK, TelegramSettings
from goodbot_connectors.telegram.menus import menus

_LONGEST = 100
_LONGEST_ID = 16
"""Digits of 52 bits: core.telegram.org/bots/api#user."""
_HASH = range(30, 51)
"""Characters after the colon; today's tokens have 35."""
_GROUPS = 20
"""So many groups are asked about; each is a call."""
_ASCII_WORD = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")


class TelegramSetup(ConnectorSetup):
    """One bot account."""

    title = "Telegram"
    guide = say("guide_telegram")
    sketches = (
        Sketch(line=1, address="t.me/BotFather", field="BotFather", value="/newbot", press="➤"),
        Sketch(line=3, address="t.me/BotFather", field="Use this token", value="123456789:AAE…"),
    )
    settings: TelegramSettings
    clock: Clock = SystemClock()

    @classmethod
    def malformed(cls, name: str, value: str) -> str:
        """What a token cannot be. The value itself is never in the sentence."""
        if not value.strip():
            return phrase("tok_empty")
        if any(character.isspace() for character in value.strip()):
            return phrase("tg_spaces")
        number, colon, rest = value.strip()[:_LONGEST].partition(":")
        if not colon or not (number.isascii() and number.isdecimal()):
            return phrase("tg_form")
        if not set(rest) <= _ASCII_WORD:
            return phrase("tg_odd")
        if len(rest) not in _HASH or len(value.strip()) > _LONGEST:
            return phrase("tg_short", count=len(rest))
        return ""

    @classmethod
    def wrong_user_id(cls, value: str) -> str:
        """A person's id is a number; their name can change hands."""
        if value.isascii() and value.isdecimal() and value[:1] != "0" and len(value) <= _LONGEST_ID:
            return ""
        return phrase("tg_user")

    @classmethod
    def pairing_link(cls, bot: Identity, code: str) -> str:
        """It shows Start, which sends the code: core.telegram.org/bots/features#deep-linking."""
        return f"{bot.link}?start={code}" if bot.link else ""

    def addresses(self) -> Sequence[str]:
        """Where Telegram answers."""
        return (self.settings.api_base or BASE,)

    def listens(self) -> str:
        """Where the proxy brings Telegram's calls, in webhook mode."""
        place = f"{self.settings.webhook_host}:{self.settings.webhook_port}"
        return place if self.settings.mode == WEBHOOK else ""

    async def identify(self) -> Identity:
        """getMe."""
        async with self._open() as (_, me):
            return me

    async def examine(self) -> Sequence[Check]:
        """Who else reads its updates, what it sees in groups, and whether our clock fits."""
        async with self._open() as (api, me):
            found = [_updates(self.settings, await api.webhook()), _privacy(api.reads_groups)]
            for channel in self.channels[:_GROUPS]:
                found.append(await _group(api, channel, me.name))
        return [*found, *self._dates.checks(self.title)]

    async def remove(self, *, dry_run: bool) -> Sequence[str]:
        """Take back the command menus and the webhook that are still ours."""
        found: list[str] = []
        async with self._open() as (api, me):
            ours = [menu for menu in menus() if await api.commands(*menu[:2]) == menu.commands]
            if ours:
                found.append(phrase("tg_menus", name=me.name))
            url = self.settings.webhook_url
            webhook = bool(url) and (await api.webhook()).url == url
            if webhook:
                found.append(phrase("tg_webhook", name=me.name))
            if not dry_run:
                for scope, language, _ in ours:
                    await api.set_commands((), scope, language)
                if webhook:
                    await api.set_webhook("", "")
        return found

    @contextlib.asynccontextmanager
    async def _open(self) -> AsyncGenerator[tuple[Api, Identity]]:
        self._dates = Dates(self.clock)
        api = Api(self.secrets.get(TOKEN), self._dates, self.settings.api_base)
        try:
            me = await api.open()
            name = me.username
            yield api, Identity(account=me.id, name=f"@{name}", link=f"https://t.me/{name}")
        finally:
            await api.close()


def _updates(settings: TelegramSettings, webhook: WebhookInfo) -> Check:
    """Whether what people do reaches us, or another program."""
    part = "telegram updates"
    here = settings.webhook_url if settings.mode == WEBHOOK else ""
    if webhook.url != here:
        return _elsewhere(part, settings, webhook.url)
    if not here:
        return ok(part, phrase("tg_asks"))
    if webhook.last_error_message and webhook.pending_update_count:
        return warn(
            part,
            phrase("tg_waits", count=webhook.pending_update_count, why=webhook.last_error_message),
            phrase("tg_waits_fix"),
        )
    return ok(part, phrase("tg_brings", host=_host(here)))


def _elsewhere(part: str, settings: TelegramSettings, url: str) -> Check:
    if not url:
        return warn(part, phrase("tg_not_set"), "goodbot run")
    if settings.mode == WEBHOOK:
        return warn(part, phrase("tg_until", host=_host(url)), phrase("tg_until_fix"))
    if url == settings.webhook_url:
        return warn(part, phrase("tg_still"), "goodbot run")
    return fail(
        part,
        phrase("tg_other", host=_host(url)),
        phrase("tg_other_fix", address=f"{BASE}<token>/deleteWebhook"),
    )


def _host(url: str) -> str:
    """The host of an address: its path and user may be secret."""
    return url.partition("://")[2].partition("/")[0].rpartition("@")[2]


def _privacy(reads_all: bool) -> Check:
    part = "telegram groups"
    if reads_all:
        return warn(part, phrase("tg_privacy_off"), phrase("tg_privacy_fix"))
    return ok(part, phrase("tg_privacy_on"))


async def _group(api: Api, chat: str, name: str) -> Check:
    """Whether reactions reach it in one group."""
    part = f"telegram group {chat}"
    try:
        status = await api.status_in(int(chat))
    except (RefusedError, ValueError) as error:
        why = phrase("tg_no_number") if isinstance(error, ValueError) else str(error)
        return warn(part, phrase("tg_unseen", why=why), phrase("tg_unseen_fix"))
    if status == "administrator":
        return ok(part, phrase("tg_admin"))
    if status == "member":
        return warn(part, phrase("tg_member", name=name), phrase("tg_admin_fix"))
    if status == "restricted":
        return warn(part, phrase("tg_restricted"), phrase("tg_admin_fix"))
    return warn(part, phrase("tg_gone", status=status), phrase("tg_gone_fix", chat=chat))
