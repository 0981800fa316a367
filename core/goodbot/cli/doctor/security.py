# SPDX-License-Identifier: Apache-2.0
"""`goodbot doctor --security`: who may talk, rate and administer where, and what can be reached."""

from __future__ import annotations

import asyncio
import contextlib
import os
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from goodbot.access.authorization import WEB
from goodbot.access.login import OWNER, default_grants
from goodbot.api.connector import ConnectorSpec
from goodbot.api.setup import Check, Examined
from goodbot.api.texts import explained, reworded
from goodbot.api.texts.terminal import here, phrase
from goodbot.base import sealed
from goodbot.base.addresses import is_here
from goodbot.base.columns import padded, wide, wrapped
from goodbot.base.errors import GoodbotError
from goodbot.base.installed import missing_modules
from goodbot.base.suggest import TERMINAL
from goodbot.cli.connector_setup import prepared, setup_class
from goodbot.cli.doctor.checks import short
from goodbot.cli.doctor.data import path
from goodbot.cli.doctor.network import http_port
from goodbot.config import secrets
from goodbot.config.layout import beside
from goodbot.config.lock import CONTROL_SOCKET, socket_path
from goodbot.config.secrets import Secrets, SecretStore
from goodbot.store import channels, inspection, people, workshop

Row = dict[str, Any]

_ROLES = {"owners": "owner", "raters": "rater", "talkers": "talker", "rater_groups": "rater (group)"}
_LIMITS = ("sec_limit_roles", "sec_limit_shared", "sec_limit_socket", "sec_limit_plugin")


def report(examined: Examined, wrong: Sequence[Check]) -> Mapping[str, Any]:
    """`text` for people and `data` for programs. Ids only, never a name or a token's value."""
    data = asyncio.run(_collect(examined))
    data["problems"] = [check.text for check in wrong]
    return {"text": _text(data), "data": data}


async def _collect(examined: Examined) -> dict[str, Any]:
    config = examined.config
    specs: Mapping[str, ConnectorSpec] = {}
    with contextlib.suppress(GoodbotError):
        specs = examined.plugins.connectors()
    configured = {name: spec for name, spec in specs.items() if name in config.connectors}
    known = [*_local(), *_configured(examined, configured)]
    owners = [f"{one['connector']}:{one['id']}" for one in known if one["role"] == "owner"]
    grants: list[people.GrantRow] = []
    opened: list[channels.ChannelRow] = []
    sharers = sorted(owners)  # who has set the bot up teaches until they say `share off`
    try:
        async with inspection.look(path(config)) as db:
            if await inspection.current(db):
                grants = await people.grants(db)
                opened = await channels.everywhere(db)
                sharers = await inspection.sharers(db, owners)
    except GoodbotError:
        pass  # nothing is stored, or `goodbot doctor` says why it cannot be read
    return {
        "people": [*known, *map(_given, grants)],
        "channels": [*_named(examined, configured), *map(_opened, opened)],
        "shares": sharers,
        "listens": [*_listens(examined), *_taking_calls(examined, configured)],
        "tokens": _tokens(examined, configured),
        "files": _files(config.home),
        "plugins": [
            {"name": info.name, "distribution": info.distribution, "version": info.version}
            for info in examined.plugins.infos()
            if info.state == "loaded" and info.distribution != "goodbot"
        ],
        "leaves": [
            phrase("sec_leaves", name=name) for name in sorted(configured) if name not in (TERMINAL, WEB)
        ],
        "limits": [phrase(key) for key in _LIMITS],
    }


def _local() -> list[Row]:
    return [_person(TERMINAL, "owner", str(os.geteuid()), phrase("sec_user"))]


def _person(connector: str, role: str, id_: str, source: str) -> Row:
    return {"connector": connector, "role": role, "id": id_, "source": source}


def _configured(examined: Examined, specs: Mapping[str, ConnectorSpec]) -> list[Row]:
    rows: list[Row] = []
    for name, spec in sorted(specs.items()):
        try:
            grants, _ = examined.config.connector(name, spec.settings)
        except GoodbotError:
            continue
        for key, role in _ROLES.items():
            rows += [_person(name, role, id_, "config") for id_ in getattr(grants, key)]
        if default_grants(name, grants) != grants:
            rows.append(_person(name, "owner", OWNER, phrase("sec_login")))
    return rows


def _given(grant: people.GrantRow) -> Row:
    connector, _, id_ = grant.person.partition(":")
    return _person(connector, grant.role, id_, phrase("sec_given", who=grant.given_by))


def _named(examined: Examined, specs: Mapping[str, ConnectorSpec]) -> list[Row]:
    rows: list[Row] = []
    for name, spec in sorted(specs.items()):
        try:
            grants, _ = examined.config.connector(name, spec.settings)
        except GoodbotError:
            continue
        rows += [{"connector": name, "id": id_, "source": "config"} for id_ in grants.channels]
    return rows


def _opened(channel: channels.ChannelRow) -> Row:
    source = phrase("sec_enabled", who=channel.enabled_by)
    return {"connector": channel.connector, "id": channel.channel, "source": source}


def _listens(examined: Examined) -> list[Row]:
    """Sockets and ports, whether or not a daemon has them open now."""
    home, http = examined.config.home, examined.config.http
    rows: list[Row] = []
    if home.is_dir():
        for place in (socket_path(home, CONTROL_SOCKET), *sorted(home.glob("connectors/*/*.sock"))):
            rows.append({"what": short(place), "who": _mode(place)})
    if port := http_port(examined):
        what = phrase("sec_well_pages" if WEB in examined.config.connectors else "sec_well")
        who = explained(_reaches(http.host), what, here())
        rows.append({"what": f"{http.host}:{port}", "who": who})
    return rows


def _taking_calls(examined: Examined, specs: Mapping[str, ConnectorSpec]) -> list[Row]:
    """Where connectors listen themselves, as far as they can tell without their packages."""
    rows: list[Row] = []
    for name, spec in sorted(specs.items()):
        if missing_modules(spec.requires) or (setup := setup_class(spec)) is None:
            continue
        try:
            _, settings = examined.config.connector(name, spec.settings)
        except GoodbotError:
            continue
        if place := prepared(setup, Secrets((), {}), settings, examined.config).listens():
            who = _reaches(place.rpartition(":")[0])
            rows.append({"what": place, "who": explained(who, phrase("sec_calls", name=name), here())})
    return rows


def _reaches(host: str) -> str:
    """Who can call what listens there."""
    return phrase("sec_here" if is_here(host) else "sec_elsewhere")


def _mode(place: Path) -> str:
    try:
        return phrase("sec_alone", mode=f"{stat.S_IMODE(place.lstat().st_mode):o}")
    except OSError:
        return phrase("sec_alone_off")


def _tokens(examined: Examined, specs: Mapping[str, ConnectorSpec]) -> list[Row]:
    store, rows = SecretStore(examined.config.home), list[Row]()
    for name in sorted({name for spec in specs.values() for name in spec.secrets}):
        try:
            where = store.where(name) or phrase("sec_nowhere")
        except GoodbotError as error:
            where = reworded(error, here())
        rows.append({"name": name, "where": where})
    return rows


def _files(home: Path) -> list[Row]:
    """What holds tokens or people's words: connectors keep their programs' tokens themselves."""
    found = [home, home / "config.toml", home / secrets.FILE, home / sealed.KEY]
    found += [*sorted(home.glob("goodbot.db*")), *sorted(home.glob("exports/*"))]
    for kept in ("connectors/*/*", "connectors/*/before/*"):
        found += sorted(path for path in home.glob(kept) if path.is_file())
    found += [*beside(home), *workshop.left(home), *workshop.unsealed(home)]
    return [
        {"path": short(file), "mode": f"{stat.S_IMODE(info.st_mode):o}", "uid": info.st_uid}
        for file in found
        if (info := _stat(file)) is not None
    ]


def _stat(file: Path) -> os.stat_result | None:
    try:
        return file.lstat()
    except OSError:
        return None


def _text(data: Mapping[str, Any]) -> str:
    people = [[p["connector"], p["role"], p["id"], p["source"]] for p in data["people"]]
    sections = [
        (phrase("sec_people"), _table(people)),
        (phrase("sec_channels"), _table([list(c.values()) for c in data["channels"]])),
        (phrase("sec_shares"), list(data["shares"])),
        (phrase("sec_listens"), _table([list(row.values()) for row in data["listens"]])),
        (phrase("sec_tokens"), _table([list(row.values()) for row in data["tokens"]])),
        (phrase("sec_files"), _table([[f["path"], f["mode"], f"uid {f['uid']}"] for f in data["files"]])),
        (phrase("sec_plugins"), _table([list(row.values()) for row in data["plugins"]])),
        (phrase("sec_outside"), list(data["leaves"])),
        (phrase("sec_rules"), _wrapped(data["limits"])),
    ]
    if data["problems"]:
        sections.insert(0, (phrase("sec_unread"), _wrapped(data["problems"])))
    return "\n\n".join(
        "\n".join([title, *(f"  {line}" for line in lines or [phrase("setup_none")])])
        for title, lines in sections
    )


def _wrapped(sentences: Sequence[str]) -> list[str]:
    return [line for text in sentences for line in wrapped(text, 76, indent="  ")]


def _table(rows: Sequence[Sequence[object]]) -> list[str]:
    texts = [[str(cell) for cell in row] for row in rows]
    widths = [max(map(wide, column)) for column in zip(*texts, strict=True)] if texts else []
    return ["  ".join(map(padded, row, widths)).rstrip() for row in texts]
