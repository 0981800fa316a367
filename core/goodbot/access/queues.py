# SPDX-License-Identifier: Apache-2.0
"""Which queues are whose: an open one is shared with all raters, with a platform's group, or with people."""

from __future__ import annotations

from collections.abc import Collection

import aiosqlite

from goodbot.access.authorization import Authorization
from goodbot.api.queues import QueueShare
from goodbot.store import people, queues
from goodbot.store.queues import Queue
from goodbot.store.review_queue import Viewer


async def shared_with(db: aiosqlite.Connection, authorization: Authorization, viewer: Viewer) -> list[Queue]:
    """The open queues of somebody who may rate, the newest first; of an owner all."""
    found = await queues.listed(db)
    if viewer.owner:
        return found
    # One human is asked once, whichever of their accounts was named.
    accounts = {*viewer.accounts, *await people.accounts(db, viewer.person)}
    return [one for one in found if any(_reaches(authorization, share, accounts) for share in one.shared)]


def _reaches(authorization: Authorization, share: QueueShare, accounts: Collection[str]) -> bool:
    if share.kind == "all":
        return True
    if share.kind == "person":
        return share.who in accounts
    connector, _, group = share.who.partition(":")
    members = authorization.members(connector, group)
    return any(who.partition(":")[0] == connector and who.partition(":")[2] in members for who in accounts)
