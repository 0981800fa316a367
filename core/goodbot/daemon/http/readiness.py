# SPDX-License-Identifier: Apache-2.0
"""Whether each part of a running goodbot works, in a few words: no ids, no texts, no tokens."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING

import aiosqlite

from goodbot.api.fingerprint import ServedAs
from goodbot.base.errors import GoodbotError
from goodbot.base.worded import Worded
from goodbot.conversation.connectors import CONNECTING
from goodbot.daemon.http.http import PartsSeen
from goodbot.store import settings

if TYPE_CHECKING:
    from goodbot.commands.services import Services

OK = "ok"
DOWN = "down"
STARTING = "starting"
_ANSWER_SECONDS = 5.0
_TRIED = "tried to store"


async def store_answers(app: Services, seconds: float = _ANSWER_SECONDS) -> bool:
    """Whether a transaction of the one writer comes to its end; it writes nothing."""

    async def nothing(db: aiosqlite.Connection) -> None:
        del db

    try:
        async with asyncio.timeout(seconds):
            await app.store.write(nothing)
    except (GoodbotError, TimeoutError):
        return False
    return True


async def store_takes(app: Services, seconds: float = _ANSWER_SECONDS) -> bool:
    """Whether what comes is stored: where something is wrong, a row is written to see if it still is."""
    if not app.store.trouble:
        return await store_answers(app, seconds)
    try:
        async with asyncio.timeout(seconds):
            await app.store.write(lambda db: settings.set_switch(db, _TRIED, str(app.clock.now())))
    except (GoodbotError, TimeoutError):
        return False
    return not app.store.trouble


async def parts(app: Services) -> Mapping[str, str]:
    """`ok` or `down` of the store, the model's server and each connector, by name; `connecting` at its start.

    A model that comes up is `starting`. A server that answers, but turned out to do so without the
    adapter, is down as well.
    """
    wrong = {name.partition(".")[0] for name in app.connectors.problems}
    found = {
        "store": await store_takes(app),
        "descriptors": not app.http.descriptors.trouble,
        "model": app.server.healthy() and app.registry.health.found.verdict is not ServedAs.BASE,
        **{name: name not in wrong for name in app.connectors.running},
    }
    told = {name: OK if well else DOWN for name, well in found.items()}
    told |= {name: CONNECTING for name, why in app.connectors.errors.items() if why == CONNECTING}
    return {**told, "model": STARTING if app.presence.starting() else told["model"]}


async def seen(app: Services) -> PartsSeen:
    """The parts; of a model that comes up for how long it has been at that, of the store why it is down."""
    codes = await parts(app)
    told = {
        # It may have come up meanwhile.
        "model": app.presence.starting() if codes["model"] == STARTING else "",
        "store": _reason(app.store.trouble) if codes["store"] == DOWN else "",
    }
    return PartsSeen(codes=codes, told={name: text for name, text in told.items() if text})


def _reason(trouble: str) -> str:
    """Why nothing is stored, without what the system said, which may name a host or a file."""
    return str(trouble.values.get("reason", "")) if isinstance(trouble, Worded) else ""
