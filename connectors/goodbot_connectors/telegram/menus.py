# SPDX-License-Identifier: Apache-2.0
"""The command menus: what clients suggest after a slash, by kind of chat and by language.

A menu's commands take no words, hence `/rl_good` for `/rl good`; no other bot listens to those.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import NamedTuple

from goodbot.api.commands import Command, Grant, menu
from goodbot.api.texts import ENGLISH, LANGUAGES, beside, reworded, say
from goodbot.base.text import begun

from goodbot_connectors.telegram.normalize import PREFIX

_PRIVATE, _GROUP = (menu(kind, up_to=Grant.RATE) for kind in ("private", "shared"))
_HERE = menu("shared")
SCOPES = {
    "default": _GROUP,
    "all_private_chats": _PRIVATE,
    "all_group_chats": _GROUP,
    "all_chat_administrators": [*_HERE, *(one for one in _PRIVATE if one not in _HERE)],
}
"""The commands of each scope, as core.telegram.org/bots/api#botcommandscope calls it."""


class Menu(NamedTuple):
    """One list for one scope and language."""

    scope: str
    language: str
    commands: tuple[tuple[str, str], ...]
    """Command and description."""


def fingerprint() -> str:
    """Another text once any list is another one."""
    return hashlib.sha256(repr(list(menus())).encode()).hexdigest()[:16]


def menus() -> Iterator[Menu]:
    """Every list that we publish."""
    for scope, commands in SCOPES.items():
        for language in LANGUAGES:
            told = tuple((f"{PREFIX}{one.name}", _told(one, language)) for one in commands)
            # Whoever has a language that there are no texts in is shown the one without a language.
            yield Menu(scope, "" if language == ENGLISH else language, told)


def _told(command: Command, language: str) -> str:
    """What the help says of it in that language."""
    if language == ENGLISH:
        return command.label
    said = begun(reworded(command.summary, language))
    owners = command.grant is Grant.ADMINISTER
    return beside(said, say("menu_owners", language), language) if owners else said
