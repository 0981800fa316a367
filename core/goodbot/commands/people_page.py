# SPDX-License-Identifier: Apache-2.0
"""Everybody whom the bot knows, for a page: for owners alone. What they do there are commands."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import aiosqlite

from goodbot.access.authorization import Granted, origin, person
from goodbot.api.commands import Grant
from goodbot.api.events import UserRef
from goodbot.api.people import (
    NO_ROLE,
    AccountSeen,
    PeoplePage,
    PeopleWanted,
    PersonAsking,
    PersonSeen,
    RaterAgreement,
)
from goodbot.api.sentences import ended
from goodbot.api.texts import say
from goodbot.base.errors import UsageError
from goodbot.commands.overview import may, reads
from goodbot.commands.people import granted_by
from goodbot.conversation.notifications.alarms import described
from goodbot.learning.rating_quality import agreement, contradictions
from goodbot.store import joining, people, raters, vote_history
from goodbot.store.joining import JoinRequest
from goodbot.store.raters import KnownPeople
from goodbot.store.training_pool import Pool
from goodbot.store.vote_history import Vote

if TYPE_CHECKING:
    from goodbot.commands.services import Services

PAGE = 50
ASKING = 20
_ROLES = {Grant.ADMINISTER: "owner", Grant.RATE: "rater", Grant.TALK: "talker"}
_ORDER = ("alarm", *people.ROLES, "")


@dataclass(frozen=True, kw_only=True, slots=True)
class _Person:
    """One of all: as much as it takes to find and to order them."""

    id: str
    role: str
    rank: int
    accounts: Sequence[str]
    groups: Sequence[str]

    @property
    def place(self) -> tuple[int, str]:
        return self.rank, self.id


@dataclass(frozen=True, kw_only=True, slots=True)
class _Told:
    """What the store says of those who are shown, by their id; `left_out` by account."""

    ratings: Mapping[str, int]
    left_out: Mapping[str, int]
    shares: Mapping[str, float]


async def people_page(services: Services, user: UserRef, wanted: PeopleWanted) -> PeoplePage:
    """The people, as this owner may change them. Raises UsageError."""
    if not may(services, user, "people"):
        raise UsageError(say("see_people", reads(services, user)))
    if wanted.role not in ("", *people.ROLES, NO_ROLE):
        raise UsageError(say("people_roles", user.language))
    scope, after = services.registry.scope, _after(wanted.after, user.language)
    known = await services.store.read(lambda db: raters.known(db, scope))
    labels, history = await services.store.read(lambda db: vote_history.votes(db, scope))
    alarms, agreements = await asyncio.to_thread(_judged, labels, history)
    # In a thread: with ten thousand people it takes a tenth of a second.
    granted = await asyncio.to_thread(_granted, services)
    found = await asyncio.to_thread(_everybody, services, known, granted, {one.rater for one in alarms})
    matching = [one for one in found if _matches(one, wanted)]
    shown = [one for one in matching if one.place > after][:PAGE]

    told = await services.store.read(lambda db: _read(db, services.pool, known, shown))
    asking = [] if wanted.after else _asking(services, known, await services.store.read(joining.asked))
    return PeoplePage(
        asking=asking[:ASKING],
        ask=len(asking),
        people=[
            PersonSeen(
                id=one.id,
                role=one.role,
                you=person(user) in one.accounts,
                accounts=[_account(services, user, who, one, granted) for who in one.accounts],
                groups=one.groups,
                ratings=told.ratings.get(one.id, 0),
                left_out=sum(told.left_out.get(who, 0) for who in one.accounts),
                taught=told.shares.get(one.id, 0.0) if told.shares else None,
                agreement=agreements.get(one.id),
                alarms={
                    alarm.against: ended(described(alarm, user.language), user.language)
                    for alarm in alarms
                    if alarm.rater == one.id
                },
            )
            for one in shown
        ],
        count=len(matching),
        after=f"{shown[-1].rank} {shown[-1].id}" if shown and shown[-1] is not matching[-1] else "",
    )


async def _read(db: aiosqlite.Connection, pool: Pool, known: KnownPeople, shown: Sequence[_Person]) -> _Told:
    taught = await raters.taught(db, pool)
    whole, shares = sum(taught.values()), defaultdict[str, float](float)
    for who, part in taught.items():
        shares[known.identities.get(who, who)] += part / whole
    return _Told(
        ratings=await raters.counted(db, [one.id for one in shown]),
        left_out=await raters.left_out(db, [who for one in shown for who in one.accounts]),
        shares=dict(shares),
    )


def _judged(
    labels: Sequence[Vote], history: Sequence[Vote]
) -> tuple[list[contradictions.Alarm], Mapping[str, RaterAgreement]]:
    return contradictions.alarms(labels, history), agreement.agreements(labels)


def _granted(services: Services) -> dict[str, list[Granted]]:
    found = defaultdict[str, list[Granted]](list)
    for entry in services.authorization.people():
        found[entry.person].append(entry)
    return dict(found)


def _everybody(
    services: Services, known: KnownPeople, granted: Mapping[str, Sequence[Granted]], turned: Collection[str]
) -> list[_Person]:
    """All of them in the order in which they are shown."""
    accounts = defaultdict[str, list[str]](list)
    for who in sorted({*known.seen, *granted}):
        accounts[known.identities.get(who, who)].append(who)
    found: list[_Person] = []
    for id_, own in accounts.items():
        level = max(services.authorization.level_of(who) for who in own)
        role = _ROLES.get(level, "")
        groups = [entry.by for who in own for entry in granted.get(who, ()) if entry.source == "group"]
        rank = 0 if id_ in turned else _ORDER.index(role)
        found.append(_Person(id=id_, role=role, rank=rank, accounts=own, groups=list(dict.fromkeys(groups))))
    return sorted(found, key=lambda one: one.place)


def _matches(one: _Person, wanted: PeopleWanted) -> bool:
    if wanted.role and wanted.role != (one.role or NO_ROLE):
        return False
    text = wanted.text.casefold()
    return not text or any(text in word.casefold() for word in (*one.accounts, *one.groups))


def _account(
    services: Services, user: UserRef, who: str, of: _Person, granted: Mapping[str, Sequence[Granted]]
) -> AccountSeen:
    s, first, language = services.authorization, origin(who), user.language
    sentences = [_why_so(entry, language) for entry in granted.get(who, ())]
    if first:
        sentences = [say("people_browser", language, who=first)]
    unlink = ""
    if len(of.accounts) > 1 and who == person(user):
        unlink = "/rl unlink"
    elif len(of.accounts) > 1 and s.is_local(who):
        unlink = f"goodbot people unlink {who}"
    return AccountSeen(
        who=who,
        role=_ROLES.get(s.level_of(who), ""),
        granted=sentences,
        grants=who.partition(":")[0] in s.connectors and not first,
        unlink=unlink,
    )


def _why_so(entry: Granted, language: str) -> str:
    """Which role somebody has, and where it comes from."""
    role = say(f"page_is_{entry.role}", language)
    return say("people_granted", language, role=role, source=granted_by(entry, language))


def _asking(services: Services, known: KnownPeople, asked: Sequence[JoinRequest]) -> list[PersonAsking]:
    """Those who wait for a word of an owner, the newest first as far as that is known."""
    s, names = services.authorization, {one.person: one.name for one in asked}
    waiting = {who for who in known.asked if who.partition(":")[0] in s.connectors}
    waiting = {who for who in waiting if s.level_of(who) is Grant.NONE}
    newest = [who for who in reversed(names) if who in waiting]
    rest = sorted(waiting.difference(newest))
    return [PersonAsking(who=who, name=names.get(who, "")) for who in (*newest, *rest)]


def _after(text: str, language: str) -> tuple[int, str]:
    rank, _, id_ = text.partition(" ")
    if not text:
        return -1, ""
    if not (rank.isascii() and rank.isdecimal() and len(rank) == 1):
        raise UsageError(say("odd_page", language))
    return int(rank), id_
