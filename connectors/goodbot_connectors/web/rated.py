# SPDX-License-Identifier: Apache-2.0
"""What the page of ratings asks for: out of its address, and what it has ticked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, cast

from goodbot.api.connector import ConnectorHost
from goodbot.api.events import UserRef
from goodbot.api.rated import RatedWanted
from goodbot.base.text import clean

from goodbot_connectors.kit.bridge.refused import HttpError
from goodbot_connectors.kit.fields import Json
from goodbot_connectors.web.normalize import MALFORMED

_TEXTS = ("place", "person", "rating", "version", "topic", "text", "after")
_TIMES = ("since", "until")
_LONGEST = 200
_MOST = 200
"""Answers that an address names."""
_LONGEST_ID = 512
"""Of an answer that an import has brought in."""


async def page(host: ConnectorHost, user: UserRef, query: Mapping[str, str]) -> Mapping[str, Any]:
    """Some of the rated answers, as JSON takes them. Raises HttpError and UsageError."""
    said: dict[str, Any] = {name: clean(query.get(name, ""))[:_LONGEST].strip() for name in _TEXTS}
    for name in _TIMES:
        if time := query.get(name):
            if not (time.isascii() and time.isdecimal() and len(time) < 12):
                raise HttpError(400, MALFORMED)
            said[name] = float(time)
    turns = [clean(one)[:_LONGEST_ID] for one in query.get("turns", "").split(",", _MOST)[:_MOST] if one]
    said |= {"turns": turns, "words": query.get("words") == "1", "left_out": query.get("left_out") == "1"}
    return asdict(await host.rated(user, RatedWanted(**said)))


async def topics(host: ConnectorHost, user: UserRef, _: Mapping[str, str]) -> Mapping[str, Any]:
    """What the newest rated answers are about."""
    return {"topics": [asdict(one) for one in await host.topics(user)]}


async def taught(host: ConnectorHost, user: UserRef, query: Mapping[str, str]) -> Mapping[str, Any]:
    """What the answer `turn` has taught. Raises UsageError."""
    return asdict(await host.taught(user, clean(query.get("turn", ""))[:_LONGEST_ID]))


async def leave_out(host: ConnectorHost, user: UserRef, body: Json) -> Mapping[str, str]:
    """`{"do": "out" or "in", "turns": […]}`; what came of it. Raises HttpError and UsageError."""
    do, turns = body.get("do"), body.get("turns")
    if do not in ("out", "in") or not isinstance(turns, list):
        raise HttpError(400, MALFORMED)
    ids = [clean(one)[:_LONGEST_ID] for one in cast("list[object]", turns) if isinstance(one, str)]
    if len(ids) < len(cast("list[object]", turns)):
        raise HttpError(400, MALFORMED)
    return {"told": await host.leave_out(user, ids, again=do == "in")}
