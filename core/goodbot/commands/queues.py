# SPDX-License-Identifier: Apache-2.0
"""Queues for a page: each sees those that are shared with them; owners make, close and open them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import aiosqlite

from goodbot.access.authorization import person
from goodbot.access.inbox import viewer_of
from goodbot.access.queues import shared_with
from goodbot.api.commands import Grant
from goodbot.api.events import ChannelKind, UserRef
from goodbot.api.queues import QueueMade, QueueShare, QueuesSeen, QueueWaiting, QueueWanted
from goodbot.api.texts import joined, say
from goodbot.base.errors import UsageError
from goodbot.base.redact import redact
from goodbot.base.text import clean
from goodbot.commands.audit import name as audit_name
from goodbot.commands.overview import in_private
from goodbot.learning import reward_model
from goodbot.store import predictions, queues, settings
from goodbot.store.review_queue import Viewer

if TYPE_CHECKING:
    from goodbot.commands.services import Services

MOST = 200
"""Answers of one queue."""
_LONGEST_NAME = 80
_MOST_SHARES = 50


async def queues_seen(services: Services, user: UserRef) -> QueuesSeen:
    """What this person may see of them; nothing to whoever may not rate."""

    async def operation(db: aiosqlite.Connection) -> QueuesSeen:
        viewer = await viewer_of(db, services.authorization, user)
        if viewer is None:
            return QueuesSeen()
        waiting: list[QueueWaiting] = []
        for one in await shared_with(db, services.authorization, viewer):
            done, answers = await queues.progress(db, viewer, one.id)
            if answers:  # else nothing of it is theirs to see
                waiting.append(QueueWaiting(id=one.id, name=one.name, done=done, answers=answers))
        if not viewer.owner:
            return QueuesSeen(waiting=waiting)
        return QueuesSeen(waiting=waiting, made=await _made(db, viewer), groups=_groups(services))

    return await services.store.read(operation)


async def _made(db: aiosqlite.Connection, viewer: Viewer) -> list[QueueMade]:
    return [
        QueueMade(
            id=one.id,
            name=one.name,
            made_by=one.made_by,
            at=one.made_at,
            closed=one.closed_at is not None,
            answers=(await queues.progress(db, viewer, one.id))[1],
            shared=one.shared,
            raters=await queues.raters(db, viewer, one.id),
        )
        for one in await queues.listed(db, closed=True)
    ]


def _groups(services: Services) -> list[str]:
    """The platforms' groups whose members rate, as the config names them."""
    configured = services.authorization.connectors.items()
    return sorted(f"{connector}:{group}" for connector, grants in configured for group in grants.rater_groups)


async def change_queue(services: Services, user: UserRef, wanted: QueueWanted) -> str:
    """Make, close or open one, for an owner; a sentence on what came of it. Raises UsageError."""
    language = user.language
    if not services.authorization.may(user, Grant.ADMINISTER):
        raise UsageError(say("queue_owner", language))
    match wanted.do:
        case "make":
            return await _make(services, user, wanted)
        case "close":
            await _set(services, user, wanted.id, closed=True)
            return say("queue_closed", language)
        case "open":
            await _set(services, user, wanted.id, closed=False)
            return say("queue_opened", language)
        case _:
            raise UsageError(say("queue_unknown", language))


async def _set(services: Services, user: UserRef, id_: int, *, closed: bool) -> None:
    now = services.clock.now()

    async def operation(db: aiosqlite.Connection) -> None:
        if not closed:
            await _require_room(db, user)
        if not await queues.close(db, id_, now if closed else None):
            raise UsageError(say("queue_unknown", user.language))
        await _record(services, db, user, "close" if closed else "open", id_)

    await services.store.write(operation)


async def _make(services: Services, user: UserRef, wanted: QueueWanted) -> str:
    language, now = user.language, services.clock.now()
    name = " ".join(redact(clean(wanted.name)).split())
    if not 1 <= len(name) <= _LONGEST_NAME:
        raise UsageError(say("queue_name", language, most=_LONGEST_NAME))
    if not 1 <= (len(wanted.turns) or wanted.newest) <= MOST:
        raise UsageError(say("queue_answers", language, most=MOST))
    _require_raters(services, user, wanted.shared)

    async def operation(db: aiosqlite.Connection) -> tuple[int, int, int]:
        viewer = await viewer_of(db, services.authorization, user)
        await _require_room(db, user)
        found, unsure = await _answers(services, db, viewer, wanted)
        if not found:
            raise UsageError(say("queue_empty", language))
        id_ = await queues.add(
            db, name=name, by=person(user), now=now, turns=[turn for turn, _ in found], shared=wanted.shared
        )
        await _record(services, db, user, "make", id_)
        return len(found), sum(kind != ChannelKind.SHARED.value for _, kind in found), unsure

    count, private, unsure = await services.store.write(operation)
    hidden = say("queue_private", language, count=private) if private else ""
    mixed = say("queue_unsure", language, count=unsure) if unsure else ""
    return joined(language, say("queue_made", language, count=count), hidden, mixed)


async def _answers(
    services: Services, db: aiosqlite.Connection, viewer: Viewer | None, wanted: QueueWanted
) -> tuple[list[tuple[str, str]], int]:
    """Those that are named, as far as the owner may see them; else the newest that nobody has rated.

    Of these every second is one that the reward model is least sure of, if an owner has set it so; how many
    there are is told, too.
    """
    if viewer is None:
        return [], 0
    if wanted.turns:
        return await queues.chosen(db, viewer, wanted.turns), 0
    newest = await queues.newest(db, viewer, wanted.newest)
    predicting = reward_model.asks(services)
    unsure = await queues.unsure(db, viewer, wanted.newest // 2, predicting) if predicting else []
    turns = predictions.mixed(newest, unsure, wanted.newest)
    return [(turn, ChannelKind.SHARED.value) for turn in turns], len({*turns} & {*unsure})


async def _require_room(db: aiosqlite.Connection, user: UserRef) -> None:
    if await queues.open_ones(db) >= queues.MOST_OPEN:
        raise UsageError(say("queue_many", user.language, most=queues.MOST_OPEN))


def _require_raters(services: Services, user: UserRef, shared: Sequence[QueueShare]) -> None:
    """A queue is shared with somebody who may rate, or it waits for nobody. Raises UsageError."""
    if not 1 <= len(shared) <= _MOST_SHARES:
        raise UsageError(say("queue_whom", user.language, most=_MOST_SHARES))
    groups = _groups(services)
    for one in shared:
        match one.kind:
            case "all" if not one.who:
                may = True
            case "group":
                may = one.who in groups
            case "person":
                may = services.authorization.level_of(one.who) >= Grant.RATE
            case _:
                may = False
        if not may:
            raise UsageError(say("queue_nobody", user.language, who=repr(clean(one.who)[:100])))


async def _record(services: Services, db: aiosqlite.Connection, user: UserRef, do: str, id_: int) -> None:
    """A row of the audit trail: without the queue's name, for the trail is for ever."""
    actor = await audit_name(db, in_private(services, user, "queue"), person(user))
    await settings.record(db, actor, "queue", {"args": do, "queue": id_}, services.clock.now())
