# SPDX-License-Identifier: Apache-2.0
"""The command menus: what clients suggest after a slash, by kind of chat and by language.

A menu's commands take no words, hence `/rl_good` for `/rl good`; no other bot listens to those.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import NamedTuple

from goodbot.api.commands import Grant, menu

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

WORDS = {
    "de": {
        "good": "Die Antwort war gut",
        "bad": "Die Antwort war schlecht",
        "undo": "Bewertung zurücknehmen",
        "status": "Was er gelernt hat und wann er weiterlernt",
        "help": "Alle Befehle",
        "enable": "In dieser Gruppe antworten",
        "disable": "In dieser Gruppe schweigen",
    },
    "es": {
        "good": "Esa respuesta fue buena",
        "bad": "Esa respuesta fue mala",
        "undo": "Retirar tu valoración",
        "status": "Qué ha aprendido y cuándo vuelve a aprender",
        "help": "Todos los comandos",
        "enable": "Responder en este grupo",
        "disable": "Callar en este grupo",
    },
    "fr": {
        "good": "Cette réponse était bonne",
        "bad": "Cette réponse était mauvaise",
        "undo": "Retirer votre note",
        "status": "Ce qu'il a appris, et quand il apprend ensuite",
        "help": "Toutes les commandes",
        "enable": "Répondre dans ce groupe",
        "disable": "Se taire dans ce groupe",
    },
}
"""By language code; whoever has another language reads English, which is in the table of commands."""


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
        yield Menu(scope, "", tuple((f"{PREFIX}{one.name}", one.label) for one in commands))
        for language, words in WORDS.items():
            yield Menu(scope, language, tuple((f"{PREFIX}{one.name}", words[one.name]) for one in commands))
