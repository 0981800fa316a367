# SPDX-License-Identifier: Apache-2.0
"""adapters (list, show, diff, pin, unpin, rollback, import, export), rollback, reset."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace

from goodbot.api.sentences import clause_of, ended
from goodbot.api.sentences import version as name_of
from goodbot.api.server import BASE
from goodbot.api.texts import commas, joined, say
from goodbot.base import trees
from goodbot.base.errors import AdapterError, ServerError, UsageError
from goodbot.commands import confirm
from goodbot.commands.base import Call, Result, wrong
from goodbot.commands.exporting_version import exported
from goodbot.commands.lineage import diff, listed, show, version_of
from goodbot.commands.rollback_window import answers, reset, since, whose
from goodbot.commands.whose import back, theirs
from goodbot.conversation.notifications import states
from goodbot.learning.adapters import importing, lineage, retention
from goodbot.store import adapters as versions
from goodbot.store import settings

_ACTIONS = "list, show, diff, pin, unpin, rollback, import, export"


async def adapters(call: Call) -> Result:
    """One of the actions; `list` without a word."""
    action, *words = call.args or ("list",)
    if action == "list" and not words:
        return await listed(call)
    if action == "rollback":
        return await rollback(replace(call, args=tuple(words)))
    run = _WITH_WORDS.get(action)
    if run is None:
        raise wrong(call.event, "wrong_adapters", actions=_ACTIONS)
    return await run(call, words)


async def pin(call: Call, words: Sequence[str]) -> Result:
    """Keep a version's files; if it answers, let nothing take its place by itself."""
    s, language = call.services, call.user.language
    active = await s.registry.active()
    version = _one(call, words) if words else active
    if version == BASE:
        raise wrong(call.event, "wrong_pin_base")
    row = await s.registry.row(version)
    if row.tainted:
        raise AdapterError(_withdrawn(version, row.tainted, language))
    await s.registry.path(version)
    await s.store.write(lambda db: versions.pin(db, version, s.clock.now()))
    kept = say("pinned", language, version=version)
    then = say("pinned_answers" if version == active else "does_not_answer", language, version=version)
    return Result(
        text=joined(language, kept, then),
        data={"version": version, "pinned": True, "active": version == active},
    )


async def unpin(call: Call, words: Sequence[str]) -> Result:
    """Let go of a version; what waited for it goes live, at once while the model server runs."""
    s, language = call.services, call.user.language
    pinned = [row.version for row in await s.registry.rows() if row.pinned]
    if not pinned:
        raise wrong(call.event, "wrong_unpin_none")
    active = await s.registry.active()
    if not words and active not in pinned and len(pinned) > 1:
        which = commas(language, *(f"v{version}" for version in pinned))
        raise wrong(call.event, "wrong_unpin_which", versions=which)
    version = _one(call, words) if words else active if active in pinned else pinned[0]
    if version not in pinned:
        raise wrong(call.event, "wrong_unpin", version=version)
    await s.store.write(lambda db: versions.pin(db, version, None))
    live, later = None, ""
    try:
        if s.server.healthy():
            live = await retention.go_live(s.store, s.registry)
    except ServerError as error:
        later = say("unpin_soon", language, why=error)
    waiting = [row.version for row in await s.registry.rows() if row.waits == versions.PINNED]
    if waiting and not later:
        later = say("unpin_start", language, version=waiting[-1])
    told = ended(await _answering(call, live), language) if live is not None else later
    return Result(
        text=joined(language, say("unpinned", language, version=version), told),
        data={"version": version, "pinned": False, "live": live, "waiting": waiting},
    )


async def bring_in(call: Call, words: Sequence[str]) -> Result:
    """Record what `goodbot adapters import` has prepared, as a version that does not answer."""
    if not call.direct or len(words) != 1:
        raise wrong(call.event, "wrong_adapters_import")
    s, language = call.services, call.user.language
    if s.scheduler.training:
        raise wrong(call.event, "wrong_import_training")
    registry, now = s.registry, s.clock.now()
    base = await asyncio.to_thread(registry.base)
    adapter, given = await asyncio.to_thread(
        importing.ready, s.config.home, words[0], registry.resolved, base
    )
    version = await s.store.read(versions.next_version)
    row = await asyncio.to_thread(
        importing.record, adapter, registry.root, replace(given, version=version), now
    )
    twin = await s.store.read(lambda db: versions.withdrawn_twin(db, registry.scope, row.sha256))
    if twin is not None:
        await asyncio.to_thread(trees.remove, registry.root / row.directory)
        why = clause_of(twin[1], language)
        raise AdapterError(say("wrong_import_twin", language, version=twin[0], why=why))
    await s.store.write(lambda db: versions.add(db, row, registry.scope))
    here = say("version_imported", language, version=version, source=given.source)
    return Result(
        text=joined(language, here, say("does_not_answer", language, version=version)),
        data={"version": version, "source": given.source, "sha256": row.sha256},
    )


_WITH_WORDS: Mapping[str, Callable[[Call, Sequence[str]], Awaitable[Result]]] = {
    "show": show,
    "diff": diff,
    "pin": pin,
    "unpin": unpin,
    "import": bring_in,
    "export": exported,
}


async def rollback(call: Call) -> Result:
    """To the parent of what answers now, to a version, to the base model, or without some ratings."""
    word, *rest = call.args or ("",)
    if leave := {"since": since, "answers": answers, "person": whose}.get(word):
        return await leave(call, tuple(rest))
    if word == "all":
        return await reset(replace(call, args=tuple(rest)))
    if call.args in ((), ("yes",)) and (own := await theirs(call))[1]:
        return await back(*own)
    registry = call.services.registry
    active = await registry.active()
    sure = call.args[-1:] == ("yes",)
    args = call.args[:-1] if sure else call.args
    target = await _target(call, active, args)
    if active and target != active and (await registry.row(active)).pinned:
        raise wrong(call.event, "wrong_rollback_pinned", version=active)
    language = call.user.language
    name = name_of(target, language)
    what = f"rollback from {active} to {target}"
    if not confirm.agreed(call, what, sure=sure):
        key = "ask_rollback_same" if target == active else "ask_rollback"
        question = say(key, language, name=name, now=name_of(active, language))
        label = say("button_rollback", language)
        return confirm.ask(call, what, question, command=f"rollback {target or 'base'} yes", label=label)
    await call.services.scheduler.stop()
    if not await registry.activate(target, expected=active):
        raise AdapterError(say("wrong_meanwhile", language))
    for row in await registry.rows():
        # A person has decided otherwise; where nothing moved, also over what was found not to be served.
        left = versions.UNSERVED if target == active else versions.PINNED
        if row.waits in (versions.PINNED, left):
            await call.services.store.write(lambda db, v=row.version: versions.hold(db, v, ""))
    await call.services.ab_test.dismiss()
    line = [row.version for row in lineage.ancestors(await registry.rows(), target)]
    left = active and active not in line  # what goes on from it leaves nothing behind
    kept = say("rollback_kept", language) if left else ""
    told = ended(await _answering(call, target), language)
    return Result(text=joined(language, told, kept), data={"version": target, "previous": active})


async def _target(call: Call, active: int, args: Sequence[str]) -> int:
    """Which version a rollback from `active` leads to."""
    registry = call.services.registry
    if not args:
        if not active:
            waiting = [row.version for row in await registry.rows() if row.waits]
            if waiting:
                raise wrong(call.event, "wrong_rollback_waits", version=waiting[-1])
            raise wrong(call.event, "wrong_rollback_base")
        return await registry.clean_ancestor((await registry.row(active)).parent)
    target = _to(call, args[0])
    if target and (row := await registry.row(target)).tainted:
        raise AdapterError(_withdrawn(target, row.tainted, call.user.language))
    return target


def _withdrawn(version: int, why: str, language: str) -> str:
    return say("wrong_withdrawn", language, version=version, why=clause_of(why, language))


async def _answering(call: Call, version: int) -> str:
    off = bool(await call.services.store.read(lambda db: settings.switch(db, "off")))
    return states.answering(version, off=off, language=call.user.language)


def _one(call: Call, words: Sequence[str]) -> int:
    if len(words) != 1:
        raise wrong(call.event, "wrong_one_version", command="pin")
    return version_of(call, words[0])


def _to(call: Call, word: str) -> int:
    try:
        return version_of(call, word)
    except UsageError:
        raise wrong(call.event, "wrong_rollback") from None
