# SPDX-License-Identifier: Apache-2.0
"""The audit trail of commands: who did what, without anybody's words.

Nobody can take a row out of the trail, so what it says of a person must be fit to stay. Owners
act under their own id; anybody else is called by a random alias, which forgetting them dissolves.
Strangers are without number, and have one name together.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import aiosqlite

from goodbot.access.authorization import person
from goodbot.api.commands import Grant
from goodbot.api.events import ChannelKind
from goodbot.commands.base import Call
from goodbot.store import settings

NOT_ALLOWED, NOT_DONE, NOT_FINISHED = "kept_not_allowed", "kept_not_done", "kept_not_finished"
"""Why something was refused, where that is no error's words. Older entries have it in English: their hashes
hold them as they are."""
STRANGERS = "strangers"
"""The actor of whatever is refused to people who may not even talk."""

_KEPT = 200
"""Characters of a command's words that the trail keeps."""
_DAY = 86400.0


async def audit(call: Call, action: str, detail: Mapping[str, Any]) -> None:
    """Append a row for a command that was done or refused.

    Of what somebody is refused, one row a command and day is kept; of what all strangers are refused
    together, likewise, without a word of theirs: accounts are free, and nobody ever deletes a row. How
    often they tried is counted (`status`).
    """
    s, event, now = call.services, call.event, call.services.clock.now()
    private = event.channel.kind is not ChannelKind.SHARED
    refused = detail.get("refused") == NOT_ALLOWED
    strange = refused and not s.authorization.may(event.user, Grant.TALK)
    s.quotas.strangers += strange

    async def operation(db: aiosqlite.Connection) -> None:
        actor = STRANGERS if strange else await name(db, call, person(event.user))
        if refused and await settings.recorded_since(db, actor, action, now - _DAY):
            return
        if strange:
            return await settings.record(db, actor, action, detail, now)
        words = [await name(db, call, word) for word in event.args[:_KEPT].split()]
        whole = {"args": " ".join(words), "channel": "private" if private else event.channel.id, **detail}
        await settings.record(db, actor, action, whole, now)

    await s.store.write(operation)


async def name(db: aiosqlite.Connection, call: Call, word: str) -> str:
    """How the trail spells a word: a person (`connector:id`) who is no owner, by their alias."""
    authorization = call.services.authorization
    connector, colon, id_ = word.partition(":")
    if not (colon and id_ and connector in authorization.connectors):
        return word
    return word if authorization.is_owner(word) else await settings.alias(db, word)
