# SPDX-License-Identifier: Apache-2.0
"""Whose versions a command is about, where people, channels or teams have their own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from goodbot.api.commands import Grant
from goodbot.api.server import BASE
from goodbot.api.texts import say
from goodbot.base.errors import AdapterError
from goodbot.commands import confirm
from goodbot.commands.base import Call, Result
from goodbot.commands.compare import compare
from goodbot.store import training_pool
from goodbot.store.pools import PERSON


async def theirs(call: Call) -> tuple[Call, str]:
    """The call as one about the version of their own that answers this person here, and whose it is in words.

    Where everybody's answers: the call as it is, and no words.
    """
    s = call.services
    key = await s.scopes.answering(call.event.channel, call.user)
    if not key or await s.scopes.active(key) == BASE:
        return call, ""
    return _about(call, key)


async def alone(call: Call, command: str) -> Callable[[], Awaitable[Result]] | None:
    """What somebody who is no owner may do by an owner's command here: it is about what answers them alone.

    None, as for all else: neither a version of everybody, nor of a channel or a team, nor of anybody else.
    """
    s = call.services
    key = await s.scopes.answering(call.event.channel, call.user)
    if not (key.startswith(PERSON) and s.authorization.may(call.user, Grant.TALK)):
        return None
    if command == "rollback" and call.args in ((), ("yes",)) and await s.scopes.active(key) != BASE:
        return partial(back, *_about(call, key))
    if command == "compare" and len(call.args) <= 2 and await s.own_questions.asks(key):
        return partial(compare, replace(call, services=replace(s, ab_test=s.own_questions.of(key))))
    return None


def _about(call: Call, key: str) -> tuple[Call, str]:
    s = call.services
    own = replace(s, registry=s.scopes.registry(key), pool=s.scopes.pool(key))
    return replace(call, services=own), say(f"own_{s.scopes.kind}", call.user.language)


async def own_standing(call: Call) -> Mapping[str, Any] | None:
    """For `status`: how it stands in the scope of whoever asks; None: only the shared one answers them."""
    s, language = call.services, call.user.language
    if not (key := await s.scopes.answering(call.event.channel, call.user)):
        return None
    version, pool = await s.scopes.active(key), s.scopes.pool(key)
    needed = s.config.training.min_ratings
    count = await s.store.read(lambda db: training_pool.available(db, pool, needed))
    whose = say(f"own_{s.scopes.kind}", language)
    name = f"v{version}" if version else say("own_none", language)
    told = say("status_own", language, whose=whose, name=name, available=count, needed=needed)
    return {
        "scope": s.scopes.kind,
        "version": version,
        "ratings": count,
        "needed": needed,
        "text": "\n".join(filter(None, (told, await _asked(call, key)))),
    }


async def _asked(call: Call, key: str) -> str:
    """That a question about a version of theirs waits for their choice; empty: none does."""
    s, language = call.services, call.user.language
    found = await s.own_questions.of(key).current() if await s.own_questions.asks(key) else None
    return say("own_asks", language, version=found.new) if found and found.state == "asking" else ""


async def back_from(call: Call) -> str:
    """How this person goes back from a version of their own; empty: they may not."""
    owner = call.services.authorization.may(call.user, Grant.ADMINISTER)
    allowed = owner or await alone(replace(call, args=()), "rollback")
    return say("own_how_back", call.user.language) if allowed else ""


async def back(call: Call, whose: str) -> Result:
    """Go back from a version of their own, to the one before it or to what answers everybody."""
    s, language = call.services, call.user.language
    active = await s.registry.active()
    row = await s.registry.row(active)
    while row.run is None:  # only its shared part was exchanged: the one before has learnt the same
        row = await s.registry.row(row.parent)
    target = await s.registry.clean_ancestor(row.parent)
    if target != BASE and (await s.registry.row(target)).scope != s.registry.scope:
        target = BASE
    name = f"v{target}" if target else say("own_shared", language)
    what = f"rollback {s.registry.scope} from {active} to {target}"
    if not confirm.agreed(call, what, sure=bool(call.args)):
        question = say("ask_own_back", language, whose=whose, name=name, version=active)
        label = say("button_rollback", language)
        return confirm.ask(call, what, question, command="rollback yes", label=label)
    if s.scheduler.training and s.scheduler.runner.scope == s.registry.scope:  # nobody else's is ended
        await s.scheduler.stop()
    if not await s.registry.activate(target, expected=active):
        raise AdapterError(say("wrong_meanwhile", language))
    told = say("own_back", language, whose=whose, name=name)
    return Result(text=told, data={"version": target, "previous": active, "scope": s.scopes.kind})
