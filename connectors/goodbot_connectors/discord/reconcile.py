# SPDX-License-Identifier: Apache-2.0
"""Who reacted to a message on Discord, for `goodbot_connectors.kit.reconciling`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from goodbot.api.events import MessageRef

from goodbot_connectors.discord import emoji
from goodbot_connectors.discord.api import Api
from goodbot_connectors.discord.places import where
from goodbot_connectors.discord.snowflake import identifier
from goodbot_connectors.kit.fields import Json, items, sub
from goodbot_connectors.kit.reconciling import Reconciler, Standing

_MESSAGE = "/channels/{channel_id}/messages/{message_id}"
_REACTION = f"{_MESSAGE}/reactions/{{emoji}}"
_PAGE, _PAGES = 100, 50
_NORMAL, _SUPER = 0, 1


def reconciler(
    values: Mapping[str, float], api: Callable[[], Api], me: Callable[[], str], now_ms: Callable[[], int]
) -> Reconciler:
    """One that asks Discord; `api` and `me` are those of the moment."""

    async def ask(ref: MessageRef) -> Standing:
        ids = {"channel_id": where(ref.channel), "message_id": ref.id}
        message = await api().call("GET", _MESSAGE, **ids)
        found: Standing = set()
        for reaction in items(message, "reactions"):
            face = sub(reaction, "emoji")
            name = emoji.name(face)
            if emoji.key(name) not in values:
                continue
            for kind in _kinds(reaction):
                users = await _users(api(), kind, {**ids, "emoji": emoji.in_path(face)})
                source = emoji.source(name, burst=kind == _SUPER)
                found |= {(user, source) for user in users if user != me()}
        return found

    def value(source: str) -> float | None:
        return values.get(emoji.key(emoji.of_source(source)))

    return Reconciler(ask=ask, value=value, now_ms=now_ms)


def _kinds(reaction: Json) -> list[int]:
    """Super reactions are listed by themselves."""
    counted = sub(reaction, "count_details")
    return [_NORMAL, _SUPER] if counted.get("burst") else [_NORMAL]


async def _users(api: Api, kind: int, ids: dict[str, str]) -> set[str]:
    """All people with one reaction, a page after the other; bots have no opinion."""
    found: set[str] = set()
    query: dict[str, Any] = {"limit": _PAGE, "type": kind}
    for _ in range(_PAGES):
        page = await api.list("GET", _REACTION, query=query, **ids)
        everybody = [identifier(one.get("id")) for one in page]
        found |= {identifier(one.get("id")) for one in page if not one.get("bot")} - {""}
        if len(page) < _PAGE:
            break
        query["after"] = everybody[-1]
    return found
