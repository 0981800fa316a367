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
from goodbot.base.errors import UsageError
from goodbot.store import people, trail
from goodbot.store.settings import AuditEntry

if TYPE_CHECKING:
    from goodbot.commands.services import Services

RESULTS = ("done", "asked", "refused")
_WHAT = {
    "adapters": "Look at the versions",
    "adapters diff": "Compare two versions",
    "adapters export": "Write a version to a file",
    "adapters import": "Bring a version in",
    "adapters pin": "Keep a version",
    "adapters rollback": "Go back to another version",
    "adapters show": "Look at one version",
    "adapters unpin": "Stop keeping a version",
    "cancel": "Stop the training",
    "channels": "Look where the bot is on",
    "channels disable": "Switch the bot off in a chat",
    "channels enable": "Switch the bot on in a chat",
    "compare": "Compare two versions",
    "disable": "Switch the bot off in this chat",
    "enable": "Switch the bot on in this chat",
    "export": "Write rated answers to a file",
    "forget": "Delete all that is stored of somebody",
    "history": "Look at the last answers",
    "import": "Bring rated answers in from a file",
    "leave out": "Leave an answer out",
    "link": "Connect accounts of one person",
    "log in": "Sign in to the browser",
    "notes": "Change the notes",
    "off": "Stop trainings, and let the base model answer",
    "pair": "Make a code for a new owner",
    "pause": "Stop trainings for now",
    "pause all": "Stop trainings, and let the base model answer",
    "people": "Look who may do what",
    "people grant": "Let somebody in",
    "people link": "Make an account one's own",
    "people refuse": "Turn somebody away",
    "people revoke": "Take away what somebody may do",
    "people unlink": "Make an account somebody else's again",
    "plugins": "Look at the plugins",
    "release": "Use answers again that were skipped",
    "report": "Look at who taught what",
    "reset": "Leave all ratings out, and go back to the base model",
    "restore": "Bring a backup back",
    "resume": "Let trainings go on",
    "rollback": "Go back to another version",
    "rollback all": "Leave all ratings out, and go back to the base model",
    "rollback answers": "Leave answers out, or take them in again",
    "rollback person": "Leave out what somebody rated, or take it in again",
    "rollback since": "Leave out ratings since a day",
    "settings": "Change a setting",
    "switch": "Switch to another model",
    "take in": "Take an answer in again",
    "train": "Start a training",
    "train retry": "Use answers again that were skipped",
    "train stop": "Stop the training",
    "unlink": "Separate an account again",
}
"""Each act, and what the first word behind it makes of it."""
_PAIRED = "Become an owner by a code"
_APART = ("args", "channel", "done", "asked", "refused")


async def activity(services: Services, user: UserRef, wanted: ActivityWanted) -> ActivityPage:
    """Some of the trail, for an owner. Raises UsageError."""
    _require_owner(services, user)
    if wanted.result not in ("", *RESULTS):
        raise UsageError("A result is done, asked or refused.")
    names = ("since", "until", "action", "result")
    chosen = {name: said for name in names if (said := getattr(wanted, name)) not in (None, "")}

    async def operation(db: aiosqlite.Connection) -> ActivityPage:
        named = {"person": wanted.person, "alias": await trail.called(db, wanted.person)}
        terms = {**chosen, **named} if wanted.person else chosen
        entries, end = await trail.page(db, terms, wanted.before)
        known = await trail.known(db, (name for one in entries for name in _names(one)))
        mine = {person(user), *await people.accounts(db, person(user))}
        acts = [_act(one, known, mine) for one in entries]
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
        raise UsageError("Only owners see what was done here.")


def _act(entry: AuditEntry, known: Mapping[str, str], mine: set[str]) -> Act:
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
        what=_PAIRED if entry.action == "pair" and not command else _what(entry.action, args),
        typed=f"{entry.action} {args}".strip() if command else "",
        where=str(detail.get("channel", "")),
        refused=str(detail.get("refused", "")),
        asked=bool(detail.get("asked")),
        facts={name: known.get(said, said) for name, said in _facts(detail).items()},
        hash=entry.hash,
    )


def _what(action: str, args: str) -> str:
    """In plain words what an act is; one of a plugin as it is called."""
    return _WHAT.get(f"{action} {args.partition(' ')[0]}") or _WHAT.get(action) or action.capitalize()


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
