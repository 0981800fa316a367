# SPDX-License-Identifier: Apache-2.0
"""What somebody is to be told after a commit, and how it is looked at again where they cannot be told."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import NamedTuple

import aiosqlite

from goodbot.access.direct_message import Still
from goodbot.api.notice import Notice

Look = Callable[[aiosqlite.Connection], Awaitable[list[Notice]]]
"""All that somebody is to be told by now, as the store says."""


class Due(NamedTuple):
    """Something to tell, and what is to be told of it later."""

    notice: Notice
    still: Still


def dues(found: Iterable[Notice], look: Look) -> list[Due]:
    """Return each with a way to find out, by `look`, whether it is still to be told."""

    def still(key: str) -> Still:
        async def one(db: aiosqlite.Connection) -> Notice | None:
            return next((notice for notice in await look(db) if notice.key == key), None)

        return one

    return [Due(notice, still(notice.key)) for notice in found]
