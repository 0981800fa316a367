# SPDX-License-Identifier: Apache-2.0
"""What pages ask of queues: those that are one's own, and for owners to make and close them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, cast

from goodbot.api import texts
from goodbot.api.connector import ConnectorHost
from goodbot.api.events import UserRef
from goodbot.api.queues import QueueShare, QueueWanted

from goodbot_connectors.kit.bridge.refused import HttpError
from goodbot_connectors.kit.fields import Json
from goodbot_connectors.web.normalize import MALFORMED

WORDS = (
    *("queue_page_title", "queue_page_hint", "queue_page_name", "queue_page_which", "queue_page_ticked"),
    *("queue_page_shown", "queue_page_newest", "queue_page_count", "queue_page_with", "queue_page_all"),
    *("queue_page_group", "queue_page_people", "queue_page_ids", "queue_page_make", "queue_page_none"),
    *("queue_page_closed", "queue_page_close", "queue_page_open", "queue_page_done", "queue_page_nobody"),
    *("queue_page_inbox", "queue_page_every", "queue_page_finished", "queue_page_more"),
)
"""What the pages say of them by themselves; their places are filled in there."""
_MOST = 500
"""Answers and shares that are looked at, at most: the core says how many it takes."""
_LONGEST = 512


async def page(host: ConnectorHost, user: UserRef, _: Mapping[str, str]) -> Mapping[str, Any]:
    """The queues that this person may see, and the words around them."""
    catalogue = texts.catalogue(user.language or texts.ENGLISH)
    words = {name.removeprefix("queue_page_"): catalogue[name] for name in WORDS}
    return {**asdict(await host.queues(user)), "words": words}


async def change(host: ConnectorHost, user: UserRef, body: Json) -> Mapping[str, str]:
    """`{"do": "make", "name", "turns" or "newest", "shared": [[KIND, WHO], …]}`, or `close`, `open` an `id`.

    Raises HttpError and UsageError.
    """
    match body:
        case {"do": "make", "name": str(name), "turns": turns, "newest": int(newest), "shared": shared}:
            wanted = QueueWanted(
                do="make",
                name=name[:_LONGEST],
                turns=[_text(one) for one in _list(turns)],
                newest=newest,
                shared=[_share(one) for one in _list(shared)],
            )
        case {"do": "close" | "open" as do, "id": int(id_)} if 0 < id_ < 1 << 53:
            wanted = QueueWanted(do=do, id=id_)
        case _:
            raise HttpError(400, MALFORMED)
    return {"told": await host.change_queue(user, wanted)}


def number(said: str) -> int:
    """A queue's, as an address says it; else that of none, for what it holds is not everything."""
    return int(said) if said.isascii() and said.isdecimal() and len(said) < 16 else -1


def _list(said: object) -> list[object]:
    if not isinstance(said, list):
        raise HttpError(400, MALFORMED)
    return cast("list[object]", said)[:_MOST]


def _text(said: object) -> str:
    if not isinstance(said, str):
        raise HttpError(400, MALFORMED)
    return said[:_LONGEST]


def _share(said: object) -> QueueShare:
    match said:
        case [str(kind), str(who)]:
            return QueueShare(kind=kind[:_LONGEST], who=who[:_LONGEST])
        case _:
            raise HttpError(400, MALFORMED)
