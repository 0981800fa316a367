# SPDX-License-Identifier: Apache-2.0
"""A Telegram on loopback: the Bot API with chats, people, updates, limits and faults.

::

    async with FakeTelegram() as telegram:
        bot = telegram_library.Bot(TOKEN, base_url=telegram.api)
        ada = telegram.person("Ada")
        group = telegram.group("The lab", [ada], admin=True)
        ada.says("hello", chat=group, mention=True)
        ...
        [answer] = ada.sees(group)
        ada.reacts(answer.id, "👍", chat=group)

After Bot API 10.1, for bots that write text: no media goes out, `parse_mode` is refused. What it
takes and says has the shapes of core.telegram.org/bots/api.
"""

from goodbot_fakes.telegram.chats import Chat, Message
from goodbot_fakes.telegram.driver import TelegramDriver
from goodbot_fakes.telegram.errors import BotApiError
from goodbot_fakes.telegram.flood import FloodLimits
from goodbot_fakes.telegram.people import Person
from goodbot_fakes.telegram.server import TOKEN, WRONG_TOKEN, FakeTelegram

__all__ = [
    "TOKEN",
    "WRONG_TOKEN",
    "BotApiError",
    "Chat",
    "FakeTelegram",
    "FloodLimits",
    "Message",
    "Person",
    "TelegramDriver",
]
