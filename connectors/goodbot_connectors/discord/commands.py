"""`/rl` and the context menu of messages: as Discord is told of them, and as it gives them back.

A slash command names no message, so it is about the last answer in its channel; an answer of one's
choice is rated from its context menu.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Mapping
from typing import Any, NamedTuple

from goodbot.api.connector import ConnectorHost
from goodbot.base.errors import ConnectorError, StoreError
from goodbot.base.text import clean

from goodbot_connectors.discord.api import Api
from goodbot_connectors.discord.words import ENGLISH, MENUS, OTHERS
from goodbot_connectors.kit.fields import Json, as_json, items, string

logger = logging.getLogger(__name__)

SLASH = "rl"
PATH = "/applications/{application_id}/commands"
_ANYTHING = "do"
_KEPT = "commands"
"""The value of the host's that says what was published, and for which application."""
_CHAT, _MESSAGE = 1, 3
_SUBCOMMAND, _STRING, _INTEGER = 1, 3, 4
_GUILD, _USER = 0, 1
_EVERYWHERE = (0, 1, 2)
"""In servers, in direct messages with us, and, for whoever has installed us, in all other chats."""
_LONGEST = 6000


class Option(NamedTuple):
    """One thing that is filled in; integers have a largest value."""

    name: str
    required: bool = False
    largest: int = 0


_ANSWER, _WORDS = Option("answer"), Option("words")
OPTIONS: dict[str, tuple[Option, ...]] = {
    "good": (_ANSWER,),
    "bad": (_ANSWER,),
    "stars": (Option("count", required=True, largest=5), _ANSWER),
    "reason": (Option("text", required=True),),
    "better": (Option("text", required=True),),
    "undo": (_ANSWER,),
    "status": (),
    "history": (Option("count", largest=50),),
    "why": (_ANSWER,),
    "help": (),
    "share": (_WORDS,),
    "forget": (_WORDS,),
    "link": (_WORDS,),
    "web": (),
    "train": (_WORDS,),
    "pause": (),
    "resume": (),
    "rollback": (_WORDS,),
    _ANYTHING: (Option("words", required=True),),
}
"""The subcommands and their options, in the order in which their words go into a command."""


def commands() -> list[dict[str, Any]]:
    """All of it, as a bulk overwrite takes it."""
    places = {"contexts": list(_EVERYWHERE), "integration_types": [_GUILD, _USER]}
    slash = {**_named(SLASH), **places, "type": _CHAT, "options": [_subcommand(name) for name in OPTIONS]}
    menus = [
        {
            "type": _MESSAGE,
            "name": names[""],
            **places,
            "name_localizations": {locale: name for locale, name in names.items() if locale},
        }
        for names in MENUS.values()
    ]
    return [slash, *menus]


def _subcommand(name: str) -> dict[str, Any]:
    return {**_named(name), "type": _SUBCOMMAND, "options": [_option(o) for o in OPTIONS[name]]}


def _option(option: Option) -> dict[str, Any]:
    found = {**_named(option.name), "required": option.required}
    if option.name == "count":
        return {**found, "type": _INTEGER, "min_value": 0, "max_value": option.largest}
    return {**found, "type": _STRING, "max_length": _LONGEST}


def _named(word: str) -> dict[str, Any]:
    there = {locale: words[word] for locale, words in OTHERS.items() if word in words}
    return {
        "name": ENGLISH[word].name,
        "name_localizations": {locale: words.name for locale, words in there.items()},
        "description": ENGLISH[word].does,
        "description_localizations": {locale: words.does for locale, words in there.items()},
    }


def typed(data: Json) -> tuple[str, str]:
    """Name and arguments of a slash command that was used; an empty one asks for help."""
    chosen = next(items(data, "options"), as_json(None))
    name = string(chosen, "name")
    given = {string(one, "name"): one.get("value") for one in items(chosen, "options")}
    words = [
        clean(str(given[option.name]))
        for option in OPTIONS.get(name, ())
        if isinstance(given.get(option.name), (str, int))
    ]
    args = " ".join(words).strip()
    if name == _ANYTHING:
        name, _, args = args.removeprefix(f"/{SLASH} ").partition(" ")
    return clean(name) or "help", args.strip()


def menu(data: Json) -> str:
    """What an entry of the context menu does: a key of `words.MENUS`, or nothing."""
    name = string(data, "name")
    return next((does for does, names in MENUS.items() if names[""] == name), "")


def fingerprint() -> str:
    """Another text once any command is another one."""
    return hashlib.sha256(json.dumps(commands(), sort_keys=True).encode()).hexdigest()[:16]


def missing(there: list[Json]) -> list[str]:
    """The names of those commands that are not among what Discord has."""
    names = {string(one, "name") for one in there}
    return [command["name"] for command in commands() if command["name"] not in names]


async def publish(host: ConnectorHost, api: Api, application: str) -> None:
    """Tell Discord, unless it has what it was told the last time."""
    ours = f"{application} {fingerprint()}"
    ids: Mapping[str, str] = {"application_id": application}
    try:
        if await host.get(_KEPT) == ours and not missing(await api.list("GET", PATH, **ids)):
            return
        await api.call("PUT", PATH, body=commands(), **ids)
        await host.set(_KEPT, ours)
    except (ConnectorError, StoreError) as error:
        logger.warning("discord: the commands were not published: %s", error)
