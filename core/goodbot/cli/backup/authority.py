# SPDX-License-Identifier: Apache-2.0
"""What a restore gives: rights, links, shares, plugins, addresses and programs that do not hold now.

That a backup is whole says nothing of who made it, and one's own older one has rights in it that were
taken back since. So both sides are read alike, and what the backup has more is a `Gain`, told before
anybody agrees. Some need a word beside the yes (`Gain.word`).
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from goodbot import config
from goodbot.access.authorization import LEVELS, WEB
from goodbot.access.login import OWNER
from goodbot.api import judge
from goodbot.api.plugins import PluginHost
from goodbot.api.texts.terminal import phrase
from goodbot.base.errors import ConfigError, GoodbotError
from goodbot.base.suggest import TERMINAL
from goodbot.cli.backup import places
from goodbot.cli.backup.places import Place
from goodbot.config import remote, toml
from goodbot.config.layout import DATABASE
from goodbot.config.secrets import SecretStore
from goodbot.inference.servers import choice
from goodbot.store import channels, inspection, people

OWNERS, RIGHTS, ADDRESSES, PRIVACY, PROGRAMS = "owners", "rights", "addresses", "privacy", "programs"
WORDS = (OWNERS, RIGHTS, ADDRESSES, PRIVACY, PROGRAMS)
"""What is typed to agree; the texts `accept_WORD` say to what."""

_ROLES = {"owners": "owner", "raters": "rater", "talkers": "talker"}
_LISTS = {"rater_groups": "gain_group", "channels": "gain_channel"}
_ADDRESS = ("host", "hosts", "names", "url", "urls", "base", "endpoint", "gateway", "upstream")
_PROGRAM = ("program", "binary", "command", "executable")
_PASSES = "pass_credentials"
"""The setting with which what programs log in with goes to an address."""
_TELLS = ("content", "words", "private_chats")
"""Settings of a feature or tracker with which it sends what people say."""
_UNCHECKED = ("insecure_local", "openid_metadata")
"""Settings with which whoever calls may say who they are, an owner too."""
_SHOWN = 120
"""Characters of a setting that are shown."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Gain:
    """One thing that may be after a restore, and may not be now."""

    text: str
    """A line for a person."""
    word: str = ""
    """What has to be typed for it, one of `WORDS`; empty where the yes is enough."""
    owner: str = ""
    """Who becomes an owner, as `connector:id`."""


@dataclass(frozen=True, kw_only=True)
class Authority:
    """What one state directory lets others do."""

    roles: Mapping[str, str] = field(default_factory=dict[str, str])
    """The highest role of each `connector:id`."""
    more: frozenset[str] = frozenset()
    """Groups and channels, a line each."""
    sharers: frozenset[str] = frozenset()
    """Whose private chats train what others talk to."""
    together: Mapping[str, str] = field(default_factory=dict[str, str])
    """Accounts that are one person, by the key of that person."""
    plugins: frozenset[str] = frozenset()
    sections: frozenset[str] = frozenset()
    """Platforms, trackers and features that are on, as `[connectors.NAME]`."""
    settings: Mapping[Place, Any] = field(default_factory=dict[Place, Any])
    """All others of the config."""
    unread: bool = False
    """Whether nothing of its config could be read."""
    notes: tuple[str, ...] = ()
    """What could not be read of it."""


async def read(home: Path, database: Path | None = None) -> Authority:
    """The authority in a state directory, whoever made it; changes nothing.

    `database` is read in place of its own, where that is of an older schema.
    """
    database = database or home / DATABASE
    notes: list[str] = []
    try:
        config.load(home)
    except ConfigError as error:
        notes.append(phrase("restore_no_settings", why=error))
    found = _table(home)
    table = found or {}
    sections = frozenset(
        places.section((kind, name))
        for kind in ("connectors", "tracking", "features")
        for name in _tables(table.get(kind))
    )
    connectors = _tables(table.get("connectors"))
    roles, more = dict[str, str](), set[str]()
    for name, section in connectors.items():
        _granted(name, section, roles, more)
    plugins = _tables(table).get("plugins", {})
    enabled = frozenset(_list(plugins.pop("enable", None)))
    together, sharers = dict[str, str](), list[str]()
    if database.is_file():
        try:
            together, sharers = await _stored(database, roles, more)
        except GoodbotError as error:
            notes.append(phrase("restore_no_rights", why=error))
    on = {("filters", name, ""): "on" for name in _tables(table.get("filters"))}  # also one without keys
    return Authority(
        roles=roles,
        more=frozenset(more),
        sharers=frozenset(sharers),
        together=together,
        plugins=enabled,
        sections=sections,
        settings={**dict(places.leaves(table)), **on},
        unread=found is None,
        notes=tuple(notes),
    )


def _table(home: Path) -> dict[str, Any] | None:
    """The config, right or wrong: a mistake in it is soon corrected, and then the rest holds.

    None where it is no TOML.
    """
    try:
        return tomllib.loads(toml.read(home / "config.toml"))
    except FileNotFoundError:
        return {}
    except (ConfigError, tomllib.TOMLDecodeError, RecursionError):
        return None


def _granted(name: str, section: dict[str, Any], roles: dict[str, str], more: set[str]) -> None:
    """Take out of a connector's section whom it lets do what."""
    if name == WEB and not section.get("owners"):
        _give(roles, f"{WEB}:{OWNER}", "owner")  # whoever logs in from the machine
    for key, role in _ROLES.items():
        for id_ in _list(section.pop(key, None)):
            _give(roles, f"{name}:{id_}", role)
    for key, gain in _LISTS.items():
        more |= {phrase(gain, name=f"{name}:{id_}") for id_ in _list(section.pop(key, None))}


async def _stored(database: Path, roles: dict[str, str], more: set[str]) -> tuple[dict[str, str], list[str]]:
    """Add what chats and commands have given; returns which accounts are one person, and who shares."""
    owners = [who for who, role in roles.items() if role == "owner"]
    owners.append(f"{TERMINAL}:{os.geteuid()}")
    async with inspection.look(database) as db:
        for row in await people.grants(db):
            _give(roles, row.person, row.role)
        for one in await channels.everywhere(db):
            more.add(phrase("gain_channel", name=f"{one.connector}:{one.channel}"))
        return await inspection.linked(db), await inspection.sharers(db, owners)


async def forgotten_since(home: Path, moment: float) -> bool:
    """Whether somebody was forgotten here after it (seconds since the epoch)."""
    try:
        async with inspection.look(home / DATABASE) as db:
            return await inspection.forgotten_since(db, moment)
    except GoodbotError:
        return False


def gains(before: Authority, after: Authority, *, new: bool, kept: Callable[[Place], bool]) -> list[Gain]:
    """What `after` has more, what weighs most first.

    `new`: nothing was there, so nobody's right was taken back. `kept` says of a section whether a token
    is kept for it here.
    """
    again = "" if new else RIGHTS
    found = [Gain(text=phrase("gain_unread"), word=OWNERS)] if after.unread else []
    found += _people(before, after, again)
    found += [
        Gain(text=phrase("gain_plugin", name=name), word=PROGRAMS)
        for name in sorted(after.plugins - before.plugins)
    ]
    if not new:  # who had a right there has it again
        on = sorted(after.sections - before.sections)
        found += [Gain(text=phrase("gain_section", name=section), word=RIGHTS) for section in on]

    def sent(where: Place) -> bool:
        return kept(where) or after.settings.get((*where, _PASSES)) is True

    for place in sorted(before.settings.keys() | after.settings.keys()):
        was, is_ = before.settings.get(place), after.settings.get(place)
        if was != is_ and ((word := _word(place, was, is_, sent)) or not new):
            found.append(Gain(text=_changed(place, was, is_), word=word))
    order = (OWNERS, ADDRESSES, PRIVACY, PROGRAMS, RIGHTS, "")
    return sorted(found, key=lambda gain: order.index(gain.word))


def _people(before: Authority, after: Authority, again: str) -> list[Gain]:
    """Who may more. `again` is typed for a right that is no owner's."""
    found: list[Gain] = []
    for who, role in sorted(after.roles.items()):
        if LEVELS[role] <= LEVELS.get(before.roles.get(who, ""), 0):
            continue
        text, owns = phrase(f"gain_{role}", who=who), role == "owner"
        found.append(Gain(text=text, word=OWNERS if owns else again, owner=who if owns else ""))
    for who, identity in sorted(after.together.items()):
        apart = before.together.get(who, who) != before.together.get(identity, identity)
        if who != identity and apart:
            found.append(Gain(text=phrase("gain_together", who=who, other=identity), word=again))
    found += [Gain(text=text, word=again) for text in sorted(after.more - before.more)]
    owners = {gain.owner for gain in found if gain.owner}
    for who in sorted(after.sharers - before.sharers):
        owns = who in owners or who.removeprefix(f"{WEB}:") in owners  # that is agreed to by then
        found.append(Gain(text=phrase("gain_shares", who=who), word="" if owns else again))
    return found


def _word(place: Place, was: object, is_: object, sent: Callable[[Place], bool]) -> str:
    """What has to be typed for a setting that differs. `sent`: whether a section's addresses get a token."""
    where, key = place[:-1], place[-1]
    last = key.rpartition("_")[2]
    if key in _UNCHECKED and is_:
        return OWNERS
    if where == ("encryption",) and key == "enabled" and was and not is_:
        return PRIVACY
    if where[:1] in (("features",), ("tracking",)) and key in _TELLS and is_:
        return PRIVACY
    if last in _PROGRAM and is_ is not None:
        return PROGRAMS
    leads = last in _ADDRESS or any("://" in text for one in (was, is_) for text in _list(one))
    if not is_:  # a token goes to the platform's own address then
        return ADDRESSES if leads and (where == ("http",) or sent(where)) else ""
    return ADDRESSES if leads or (key == _PASSES and is_ is True) else ""


def _changed(place: Place, was: object, is_: object) -> str:
    name = places.setting(place)
    if is_ is None:
        return phrase("gain_unset", name=name, was=_shown(was))
    before = phrase("gain_not_set") if was is None else _shown(was)
    return phrase("gain_set", name=name, value=_shown(is_), was=before)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def keeper(home: Path, plugins: PluginHost) -> Callable[[Place], bool]:
    """Says of a section of the config whether a token is kept here that would be used by it."""
    store = SecretStore(home)
    users = tokens(plugins)

    def kept(where: Place) -> bool:
        names = [name for user, its in users.items() if where[: len(user)] == user for name in its]
        try:
            return any(store.where(name) for name in names)
        except GoodbotError:  # it cannot be read: better asked for once too often
            return True

    return kept


def tokens(plugins: PluginHost) -> dict[Place, tuple[str, ...]]:
    """The names of the tokens that go where a section, or one within it, says."""
    names: dict[Place, tuple[str, ...]] = {("serving",): (choice.KEY,), ("judge",): (judge.KEY,)}
    names |= {("training", "remote"): (remote.KEY,)}
    names |= {("connectors", name): spec.secrets for name, spec in plugins.connectors().items()}
    names |= {("tracking", name): spec.secrets for name, spec in plugins.trackers().items()}
    return names | {("features", name): spec.secrets for name, spec in plugins.features().items()}


def _give(roles: dict[str, str], who: str, role: str) -> None:
    if LEVELS[role] > LEVELS.get(roles.get(who, ""), 0):
        roles[who] = role


def _tables(value: object) -> dict[str, dict[str, Any]]:
    found = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    return {name: one for name, one in found.items() if isinstance(one, dict)}


def _list(value: object) -> list[str]:
    """The entries; of what should be a list, and is none, it alone."""
    entries = cast("list[object]", value) if isinstance(value, list) else [value]
    return [str(one) for one in entries if one is not None]
