# SPDX-License-Identifier: Apache-2.0
"""How far the bot is in learning, for a page: of `status`, `why` and `adapters` what each person may ask."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from goodbot.access.authorization import person
from goodbot.api import progress
from goodbot.api.commands import find
from goodbot.api.events import ChannelKind, ChannelRef, CommandEvent, OrderKey, UserRef
from goodbot.api.learnt import card, drifted
from goodbot.api.overview import LearntCard, Overview, TrainingNow, VersionRatings
from goodbot.api.sentences import clause_of, ended, sentence
from goodbot.api.server import BASE
from goodbot.api.texts import joined, say
from goodbot.base.errors import UsageError
from goodbot.commands.base import Call
from goodbot.commands.liked import liked
from goodbot.commands.why import untrained, what_changed
from goodbot.conversation.notifications import states
from goodbot.store import comparisons, settings

if TYPE_CHECKING:
    from goodbot.commands.services import Services


async def overview(services: Services, user: UserRef) -> Overview:
    """What this person may see, as they are told it in private. Raises UsageError."""
    if not may(services, user, "status"):
        raise UsageError("You may not talk to this bot.")
    call, language = in_private(services, user, "status"), user.language
    condition = (await services.scheduler.readiness()).condition
    off, paused = [
        bool(await services.store.read(lambda db, name=name: settings.switch(db, name)))
        for name in ("off", "paused")
    ]
    active = await services.registry.active()
    now, trainer = services.scheduler.progress, services.trainer
    curve = trainer.curve.points if trainer.progress is now else ()  # else another model's run
    return Overview(
        answers=ended(states.answering(active, off=off, begins=True, language=language), language),
        ratings=(await services.scheduler.standing()).available,
        needed=await services.scheduler.needed(),
        next=sentence(
            condition.for_owners(language) if call.confidential else condition.for_everybody(language),
            language,
        ),
        paused=off or paused,
        begun=now is not None or await trainer.underway() is not None,
        training=_training(now, curve, language) if now else None,
        lesson=await _lesson(call, active) if may(services, user, "why") else None,
        versions=await rated(call, active) if may(services, user, "adapters") else [],
    )


def in_private(services: Services, user: UserRef, name: str) -> Call:
    """As if this person typed a command to the bot in private."""
    channel = ChannelRef(connector=user.connector, account=user.account, id=user.id, kind=ChannelKind.PRIVATE)
    event = CommandEvent(event_id="", order=OrderKey(0), user=user, channel=channel, name=name)
    return Call(event=event, args=(), services=services)


def reads(services: Services, user: UserRef) -> str:
    """The language of whoever asks for a page: what they told with it, else what their platform has."""
    return user.language or services.courier.readers.language(person(user))


def may(services: Services, user: UserRef, name: str) -> bool:
    """Whether a command is one of theirs."""
    command = find(name)
    return command is not None and services.authorization.may(user, command.grant)


def _training(now: Mapping[str, Any], curve: Sequence[tuple[int, float]], language: str) -> TrainingNow:
    step, steps = progress.steps(now)
    eta = now.get("eta")
    return TrainingNow(
        doing=progress.phase(now, language),
        step=step,
        steps=steps,
        left=progress.left(eta, language) if isinstance(eta, int | float) else "",
        curve=curve,
    )


async def _lesson(call: Call, active: int) -> LearntCard:
    if active == BASE:
        return LearntCard(version=BASE, told=(await untrained(call))[0])
    s, language = call.services, call.user.language
    row = await s.registry.row(active)
    changed, pairs = await what_changed(call, row)
    if row.tainted:
        told = say("lesson_replaced", language, why=clause_of(row.tainted, language))
    elif row.run and await s.store.read(lambda db: comparisons.asks(db, row.run or 0)):
        told = say("lesson_open", language)
    elif said := card(changed, language):
        told = say("lesson_changed", language, what=said)
    else:
        told = say("lesson_same", language)
    told = joined(language, told, drifted(changed, language))
    return LearntCard(version=active, told=told, pinned=row.pinned, pairs=pairs)


async def rated(call: Call, active: int) -> list[VersionRatings]:
    """The versions of which answers were rated, the oldest first."""
    made = {row.version: row.created_at for row in await call.services.registry.rows()}
    return [
        VersionRatings(
            version=version,
            made_at=made.get(version),
            active=version == active,
            good=one.good,
            rated=one.rated,
            share=one.share,
            low=one.low,
            high=one.high,
        )
        for version, one in sorted((await liked(call)).items())
    ]
