# SPDX-License-Identifier: Apache-2.0
"""`/rl` and the context menu of messages: as Discord is told of them, and as it gives them back.

A slash command names no message, so it is about the last answer in its channel; an answer of one's
choice is rated from its context menu.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Mapping
from typing import Any

from goodbot.api.commands import ABOUT, Arg, Command, Grant, menu, parted, typed_behind
from goodbot.api.connector import ConnectorHost
from goodbot.api.texts import beside, reworded, say
from goodbot.base.errors import ConnectorError, StoreError
from goodbot.base.text import begun, clean

from goodbot_connectors.discord.api import Api
from goodbot_connectors.discord.words import MENUS, OTHERS
from goodbot_connectors.kit.fields import Json, as_json, items, string

logger = logging.getLogger(__name__)

SLASH = "rl"
PATH = "/applications/{application_id}/commands"
_KEPT = "commands"
"""The value of the host's that says what was published, and for which application."""
_CHAT, _MESSAGE = 1, 3
_SUBCOMMAND, _STRING, _INTEGER, _BOOLEAN = 1, 3, 4, 5
_GUILD, _USER = 0, 1
_EVERYWHERE = (0, 1, 2)
"""In servers, in direct messages with us, and, for whoever has installed us, in all other chats."""
_LONGEST = 6000
_ROOM = 100
"""Characters of a description."""


_ANY = Command(
    "do",
    "any other command, typed out: help lists them",
    arguments=(Arg("words", "what is typed behind /rl"),),
    grant=Grant.TALK,
)
SUBCOMMANDS = {command.name: command for command in (*menu("long"), _ANY)}
"""What follows `/rl`: what a long menu has room for, and a way to all the rest."""


def commands() -> list[dict[str, Any]]:
    """All of it, as a bulk overwrite takes it."""
    places = {"contexts": list(_EVERYWHERE), "integration_types": [_GUILD, _USER]}
    options = [_subcommand(command) for command in SUBCOMMANDS.values()]
    slash = {**_named(SLASH, ABOUT, ABOUT), **places, "type": _CHAT, "options": options}
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


def _subcommand(command: Command) -> dict[str, Any]:
    # Discord wants those first that are required.
    options = sorted(command.words("chat"), key=lambda argument: not argument.required)
    owners = command.grant is Grant.ADMINISTER
    named = _named(command.name, command.label, command.summary, owners=owners)
    return {**named, "type": _SUBCOMMAND, "options": [_option(one) for one in options]}


def _option(argument: Arg) -> dict[str, Any]:
    named = _named(argument.name.removeprefix("--"), argument.label, argument.help)
    found = {**named, "required": argument.required}
    if argument.is_option:
        return {**found, "type": _BOOLEAN}
    if argument.largest:
        return {**found, "type": _INTEGER, "min_value": 0, "max_value": argument.largest}
    if argument.choices:
        choices = [{"name": one, "value": one} for one in argument.choices]
        return {**found, "type": _STRING, "choices": choices}
    return {**found, "type": _STRING, "max_length": _LONGEST}


def _named(word: str, does: str, text: str, *, owners: bool = False) -> dict[str, Any]:
    """`does`: what English says of `text`, of the table; others have a menu's words, else those of help."""
    there = {locale: words[word] for locale, words in OTHERS.items() if word in words}
    told = {locale: _told(text, locale, owners=owners) for locale in OTHERS if locale not in there}
    return {
        "name": word,
        "name_localizations": {locale: words.name for locale, words in there.items()},
        "description": does,
        "description_localizations": {locale: words.does for locale, words in there.items()}
        | {locale: said for locale, said in told.items() if said},
    }


def _told(text: str, locale: str, *, owners: bool) -> str:
    """What the help says in that language; empty where it has nothing, or Discord no room for it."""
    said = reworded(text, locale)
    if said == text:
        return ""
    said = beside(begun(said), say("menu_owners", locale), locale) if owners else begun(said)
    return said if len(said) <= _ROOM else ""


def typed(data: Json) -> tuple[str, str]:
    """Name and arguments of a slash command that was used; an empty one asks for help."""
    chosen = next(items(data, "options"), as_json(None))
    name = string(chosen, "name")
    given = {string(one, "name"): one.get("value") for one in items(chosen, "options")}
    command = SUBCOMMANDS.get(name)
    words = [_word(one, given) for one in command.words("chat")] if command else []
    args = " ".join(word for word in words if word).strip()
    if command is _ANY:
        return typed_behind(args, f"/{SLASH}") or parted(args)
    return parted(f"{name} {args}")


def _word(argument: Arg, given: Mapping[str, object]) -> str:
    value = given.get(argument.name.removeprefix("--"))
    if argument.is_option:
        return argument.name if value is True else ""
    return clean(str(value)) if isinstance(value, (str, int)) else ""


def entry(data: Json) -> str:
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
