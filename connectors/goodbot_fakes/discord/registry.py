# SPDX-License-Identifier: Apache-2.0
"""Commands that a bot has registered, and what a person who types a slash is offered of them.

discord.com/developers/docs/interactions/application-commands
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from goodbot_fakes.discord.errors import invalid_form, unknown
from goodbot_fakes.discord.records import Snowflakes

Json = dict[str, Any]

CHAT_INPUT, ON_USER, ON_MESSAGE = 1, 2, 3
SUBCOMMAND, GROUP, STRING, INTEGER, BOOLEAN = 1, 2, 3, 4, 5
IN_GUILD, IN_BOT_DM = 0, 1
_NAME = re.compile(r"[-_'\w]{1,32}")
_MOST = {CHAT_INPUT: 100, ON_USER: 15, ON_MESSAGE: 15}
_OPTION_MAY = (
    "type",
    "name",
    "name_localizations",
    "description",
    "description_localizations",
    "required",
    "autocomplete",
    "choices",
    "min_length",
    "max_length",
    "min_value",
    "max_value",
    "channel_types",
)


class Commands:
    """Global commands, under the guild id `""`, and those of servers."""

    def __init__(self, ids: Snowflakes) -> None:
        self._ids = ids
        self._known: dict[str, dict[tuple[int, str], Json]] = {}
        self.application_id = ""

    def all(self, guild: str = "") -> list[Json]:
        """The commands of a server, or the global ones."""
        return list(self._known.get(guild, {}).values())

    def find(self, command_id: str, guild: str = "") -> Json:
        """Raises `DiscordError` for an unknown id."""
        for command in self.all(guild):
            if command["id"] == command_id:
                return command
        raise unknown("application command")

    def overwrite(self, commands: Sequence[Json], guild: str = "") -> list[Json]:
        """These and no others; one of a known name keeps its id."""
        before = self._known.get(guild, {})
        made = [self._made(command, guild, before) for command in commands]
        if len({_key(command) for command in made}) < len(made):
            raise invalid_form("0", "APPLICATION_COMMANDS_DUPLICATE_NAME", "Names must be unique")
        for kind, most in _MOST.items():
            if sum(command["type"] == kind for command in made) > most:
                raise invalid_form("0", "APPLICATION_COMMAND_TOO_MANY", f"At most {most}")
        self._known[guild] = {_key(command): command for command in made}
        return made

    def put(self, command: Json, guild: str = "") -> Json:
        """One more, or in place of one of that name."""
        known = self._known.setdefault(guild, {})
        made = self._made(command, guild, known)
        known[_key(made)] = made
        return made

    def change(self, command_id: str, changes: Json, guild: str = "") -> Json:
        """Some fields of one."""
        before = self.find(command_id, guild)
        self.remove(command_id, guild)
        known = self._known.setdefault(guild, {})
        made = self._made({**before, **changes}, guild, {_key(before): before})
        known[_key(made)] = made
        return made

    def remove(self, command_id: str, guild: str = "") -> None:
        command = self.find(command_id, guild)
        del self._known[guild][_key(command)]

    def offered(self, kind: int, name: str, guild: str, context: int) -> Json:
        """What a person finds by that name where they are. Raises `LookupError`."""
        for place in filter(None, (guild, "-")):
            where = "" if place == "-" else place
            command = self._known.get(where, {}).get((kind, name))
            if command and (where or context in (command["contexts"] or (IN_GUILD, IN_BOT_DM))):
                return command
        raise LookupError(f"Discord offers no command {name!r} here")

    def _made(self, command: Json, guild: str, known: dict[tuple[int, str], Json]) -> Json:
        kind, name = command.get("type") or CHAT_INPUT, command["name"]
        _check_name(name, kind)
        if kind == CHAT_INPUT and not command.get("description"):
            raise invalid_form("0.description", "BASE_TYPE_REQUIRED", "This field is required")
        if kind != CHAT_INPUT and (command.get("description") or command.get("options")):
            raise invalid_form(
                "0.description",
                "APPLICATION_COMMAND_CONTEXT_MENU_DESCRIPTION_NOT_ALLOWED",
                "Context menu commands cannot have description",
            )
        before = known.get((kind, name))
        permissions = command.get("default_member_permissions")
        made: Json = {
            "id": before["id"] if before else self._ids.next(),
            "version": self._ids.next(),
            "application_id": self.application_id,
            "type": kind,
            "name": name,
            "name_localizations": command.get("name_localizations"),
            "description": command.get("description") or "",
            "description_localizations": command.get("description_localizations"),
            "default_member_permissions": None if permissions is None else str(permissions),
            "dm_permission": IN_BOT_DM in (command.get("contexts") or (IN_BOT_DM,)),
            "contexts": command.get("contexts"),
            "integration_types": command.get("integration_types") or [0],
            "nsfw": False,
        }
        if guild:
            made["guild_id"] = guild
        if command.get("options"):
            made["options"] = [_option(one) for one in command["options"]]
        return made


def _option(option: Json) -> Json:
    _check_name(option["name"], CHAT_INPUT)
    kept = {name: option[name] for name in _OPTION_MAY if option.get(name) not in (None, [])}
    if option.get("options"):
        inner = [_option(one) for one in option["options"]]
        required = [bool(one.get("required")) for one in inner if one["type"] > GROUP]
        if required != sorted(required, reverse=True):
            raise invalid_form(
                "options",
                "APPLICATION_COMMAND_OPTIONS_REQUIRED_INVALID",
                "Required options must be placed before non-required options",
            )
        kept["options"] = inner
    return kept


def _check_name(name: str, kind: int) -> None:
    if kind == CHAT_INPUT and (not _NAME.fullmatch(name) or name != name.lower()):
        raise invalid_form("0.name", "APPLICATION_COMMAND_INVALID_NAME", "Command name is invalid")


def _key(command: Json) -> tuple[int, str]:
    return command["type"], command["name"]


def typed(command: Json, words: str) -> list[Json]:
    """The `options` of an interaction for what a person types after the command's name.

    Words that name a group or a subcommand are taken as such, then a number is one word, and a text
    all that is left. Raises `LookupError` for what nothing takes, and for what is required and missing.
    """
    options: list[Json] = command.get("options", [])
    inner = {one["name"]: one for one in options if one["type"] in (SUBCOMMAND, GROUP)}
    if inner:
        name, _, rest = words.strip().partition(" ")
        if name not in inner:
            raise LookupError(f"{command['name']} has no subcommand {name!r}")
        chosen = inner[name]
        return [{"type": chosen["type"], "name": name, "options": typed(chosen, rest)}]
    given: list[Json] = []
    words = words.strip()
    for option in options:
        if words and option["type"] == STRING:
            _check_choice(option, words)
            given.append({"type": STRING, "name": option["name"], "value": words})
            words = ""
        elif words and option["type"] == INTEGER:
            word, _, words = words.partition(" ")
            given.append({"type": INTEGER, "name": option["name"], "value": _number(option, word)})
        elif option.get("required"):
            raise LookupError(f"{command['name']} needs {option['name']!r}")
    if words:
        raise LookupError(f"{command['name']} takes no {words!r}")
    return given


def _number(option: Json, word: str) -> int:
    low, high = option.get("min_value", -(2**53)), option.get("max_value", 2**53)
    if not word.lstrip("-").isdecimal() or not low <= int(word) <= high:
        raise LookupError(f"{option['name']} does not take {word!r}")
    return int(word)


def _check_choice(option: Json, value: str) -> None:
    choices = [choice["value"] for choice in option.get("choices", [])]
    if (choices and value not in choices) or len(value) > option.get("max_length", 6000):
        raise LookupError(f"{option['name']} does not take {value!r}")
