# SPDX-License-Identifier: Apache-2.0
"""The audit trail for a page, for owners alone: readable, and checked where it lies."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import aiosqlite

from goodbot.access.authorization import person
from goodbot.api.activity import Act, ActivityPage, ActivityWanted, TrailChecked
from goodbot.api.commands import Grant, find
from goodbot.api.events import UserRef
from goodbot.api.sentences import clause_of
from goodbot.api.texts import ENGLISH, catalogue, say
from goodbot.base.errors import UsageError
from goodbot.commands.overview import reads
from goodbot.store import people, trail
from goodbot.store.settings import AuditEntry

if TYPE_CHECKING:
    from goodbot.commands.services import Services

RESULTS = ("done", "asked", "refused")
_APART = ("args", "channel", "done", "asked", "refused")


async def activity(services: Services, user: UserRef, wanted: ActivityWanted) -> ActivityPage:
    """Some of the trail, for an owner. Raises UsageError."""
    _require_owner(services, user)
    if wanted.result not in ("", *RESULTS):
        raise UsageError("A result is done, asked or refused.")
    language = reads(services, user)
    names = ("since", "until", "action", "result")
    chosen = {name: said for name in names if (said := getattr(wanted, name)) not in (None, "")}

    async def operation(db: aiosqlite.Connection) -> ActivityPage:
        named = {"person": wanted.person, "alias": await trail.called(db, wanted.person)}
        terms = {**chosen, **named} if wanted.person else chosen
        entries, end = await trail.page(db, terms, wanted.before)
        known = await trail.known(db, (name for one in entries for name in _names(one)))
        mine = {person(user), *await people.accounts(db, person(user))}
        acts = [_act(one, known, mine, language) for one in entries]
        actions = () if wanted.before else await trail.actions(db)
        return ActivityPage(acts=acts, before=end, actions=actions)

    return await services.store.read(operation)


async def check_activity(services: Services, user: UserRef) -> TrailChecked:
    """Whether the whole trail is as it was written, for an owner. Raises UsageError."""
    _require_owner(services, user)
    read = services.store.read
    newest = await read(trail.newest)
    entries, last, hash_ = 0, 0, ""
    while rows := await read(lambda db, after=last: trail.piece(db, after)):
        if changed := await asyncio.to_thread(trail.first_changed, rows, last, hash_):
            return TrailChecked(entries=await read(trail.count), changed=changed)
        entries, last, hash_ = entries + len(rows), rows[-1][0], rows[-1][-1]
    return TrailChecked(entries=entries, missing=newest if newest > last else 0)


def _require_owner(services: Services, user: UserRef) -> None:
    if not services.authorization.may(user, Grant.ADMINISTER):
        raise UsageError(say("see_activity", reads(services, user)))


def _act(entry: AuditEntry, known: Mapping[str, str], mine: set[str], language: str) -> Act:
    detail = _detail(entry)
    args = " ".join(known.get(word, word) for word in _words(detail))
    command = find(entry.action) is not None and "channel" in detail
    who = known.get(entry.actor, entry.actor)
    return Act(
        number=entry.seq,
        at=entry.at,
        who=who,
        you=who in mine,
        action=entry.action,
        what=_what("paired" if entry.action == "pair" and not command else entry.action, args, language),
        typed=f"{entry.action} {args}".strip() if command else "",
        where=str(detail.get("channel", "")),
        refused=clause_of(str(detail.get("refused", "")), language),
        asked=bool(detail.get("asked")),
        facts={name: known.get(said, said) for name, said in _facts(detail).items()},
        hash=entry.hash,
    )


def _what(action: str, args: str, language: str) -> str:
    """In plain words what an act is; one of a plugin as it is called."""
    for name in (f"{action} {args.partition(' ')[0]}", action):
        if (key := f"did_{name.replace(' ', '_')}") in catalogue(ENGLISH):
            return say(key, language)
    return action.capitalize()


def _detail(entry: AuditEntry) -> dict[str, Any]:
    """What else an entry says; whoever has changed it may have written anything there."""
    try:
        found = json.loads(entry.detail)
    except ValueError:
        return {"says": entry.detail}
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {"says": found}


def _words(detail: Mapping[str, Any]) -> list[str]:
    return str(detail.get("args", "")).split()


def _names(entry: AuditEntry) -> Sequence[str]:
    """All words of an entry that may be somebody's name."""
    detail = _detail(entry)
    return (entry.actor, str(detail.get("of", "")), *_words(detail))


def _facts(detail: Mapping[str, Any]) -> dict[str, str]:
    return {name: _said(value) for name, value in detail.items() if name not in _APART}


def _said(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, cast("list[object]", value)))
    return str(value).lower() if isinstance(value, bool) else str(value)
