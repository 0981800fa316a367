# SPDX-License-Identifier: Apache-2.0
"""What a server says that it serves (`/v1/models`), and which of that is the base model."""

from __future__ import annotations

from collections.abc import Sequence
from posixpath import dirname

from goodbot.api.chat_answers import as_list, as_object
from goodbot.api.survey import ListedModel
from goodbot.base.errors import ServerError
from goodbot.base.worded import Worded
from goodbot.inference.servers.upstream import Upstream

PREFIX = "goodbot-v"
"""What the names of our adapters begin with."""
_SECONDS = 30.0
_MOST = 10_000
"""Entries: a thousand goodbots on one server have up to two versions each, beside the base."""


async def models(upstream: Upstream) -> list[ListedModel]:
    """All that `/v1/models` lists. Raises ServerError."""
    reply = await upstream.ask("/v1/models", seconds=_SECONDS)
    if not reply.ok:
        raise upstream.refused(reply)
    entries = map(as_object, as_list(reply.body.get("data"))[:_MOST])
    return [
        ListedModel(
            name=_text(entry.get("id")), root=_text(entry.get("root")), parent=_text(entry.get("parent"))
        )
        for entry in entries
        if _text(entry.get("id"))
    ]


def base(listed: Sequence[ListedModel], wanted: str, place: str) -> str:
    """The base's name: `wanted` (`[serving] model`), or the only one. Raises ServerError."""
    names = [m.name for m in listed if not m.parent and not m.name.startswith(PREFIX)]
    choice = ", ".join(names[:10]) + (", …" if len(names) > 10 else "")
    if wanted:
        if names and wanted not in names:
            none = "{place} has no model {name}: set [serving] model to one of {choice}"
            raise ServerError(Worded(none, place=place, name=repr(wanted), choice=choice))
        return wanted
    if not names:
        empty = "{place} offers no model: load one there, or set [serving] model"
        raise ServerError(Worded(empty, place=place))
    if len(names) > 1:
        many = "{place} offers several models: set [serving] model to one of {choice}"
        raise ServerError(Worded(many, place=place, choice=choice))
    return names[0]


def left_behind(listed: Sequence[ListedModel], path: str) -> list[str]:
    """Our names among them that were loaded out of the directory in which `path` lies."""
    home = dirname(path)
    return [m.name for m in listed if m.name.startswith(PREFIX) and dirname(m.root) == home]


def _text(value: object) -> str:
    return value[:500] if isinstance(value, str) and value.isprintable() else ""
