# SPDX-License-Identifier: Apache-2.0
"""Whose versions a command is about, where people, channels or teams have their own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from goodbot.api.server import BASE
from goodbot.api.texts import say
from goodbot.base.errors import AdapterError
from goodbot.commands import confirm
from goodbot.commands.base import Call, Result
from goodbot.store import training_pool


async def theirs(call: Call) -> tuple[Call, str]:
    """The call as one about the version of their own that answers this person here, and whose it is in words.

    Where everybody's answers: the call as it is, and no words.
    """
    s = call.services
    key = await s.scopes.answering(call.event.channel, call.user)
    if not key or await s.scopes.active(key) == BASE:
        return call, ""
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
    return {
        "scope": s.scopes.kind,
        "version": version,
        "ratings": count,
        "needed": needed,
        "text": say("status_own", language, whose=whose, name=name, available=count, needed=needed),
    }


async def back(call: Call, whose: str) -> Result:
    """Go back from a version of their own, to the one before it or to what answers everybody."""
    s, language = call.services, call.user.language
    active = await s.registry.active()
    target = await s.registry.clean_ancestor((await s.registry.row(active)).parent)
    if target != BASE and (await s.registry.row(target)).scope != s.registry.scope:
        target = BASE
    name = f"v{target}" if target else say("own_shared", language)
    what = f"rollback {s.registry.scope} from {active} to {target}"
    if not confirm.agreed(call, what, sure=bool(call.args)):
        question = say("ask_own_back", language, whose=whose, name=name, version=active)
        label = say("button_rollback", language)
        return confirm.ask(call, what, question, command="rollback yes", label=label)
    await s.scheduler.stop()
    if not await s.registry.activate(target, expected=active):
        raise AdapterError(say("wrong_meanwhile", language))
    told = say("own_back", language, whose=whose, name=name)
    return Result(text=told, data={"version": target, "previous": active, "scope": s.scopes.kind})
