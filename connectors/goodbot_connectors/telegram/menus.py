"""The command menus: what clients suggest after a slash, by kind of chat and by language.

A menu's commands take no words, hence `/rl_good` for `/rl good`; no other bot listens to those.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import NamedTuple

from goodbot_connectors.telegram.normalize import PREFIX

_PRIVATE = ("good", "bad", "undo", "status", "help")
_GROUP = ("good", "bad", "undo", "help")
_ADMINISTRATORS = (*_GROUP, "status", "enable", "disable")
SCOPES = {
    "default": _GROUP,
    "all_private_chats": _PRIVATE,
    "all_group_chats": _GROUP,
    "all_chat_administrators": _ADMINISTRATORS,
}
"""The commands of each scope, as core.telegram.org/bots/api#botcommandscope calls it."""

WORDS = {
    "": {
        "good": "That answer was good",
        "bad": "That answer was bad",
        "undo": "Take your rating back",
        "status": "What it has learned, and when it learns next",
        "help": "All commands",
        "enable": "Answer in this group",
        "disable": "Be silent in this group",
    },
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
"""By language code; what has no language of its own gets the empty one's, English."""


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
    for scope, names in SCOPES.items():
        for language, words in WORDS.items():
            yield Menu(scope, language, tuple((f"{PREFIX}{name}", words[name]) for name in names))
