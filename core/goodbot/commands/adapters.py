# SPDX-License-Identifier: Apache-2.0
"""adapters (list, show, diff, pin, unpin, rollback, import), rollback, reset."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace

from goodbot.api.sentences import ended
from goodbot.api.sentences import version as name_of
from goodbot.api.server import BASE
from goodbot.api.texts import joined, retold, say
from goodbot.base import trees
from goodbot.base.errors import AdapterError, ServerError, UsageError
from goodbot.commands import confirm
from goodbot.commands.base import Call, Result, wrong
from goodbot.commands.lineage import diff, listed, show, version_of
from goodbot.commands.rollback_window import answers, reset, since, whose
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
    if action == "export":
        raise UsageError("an adapter is exported in a terminal: `goodbot adapters export`")
    run = _WITH_WORDS.get(action)
    if run is None:
        raise UsageError(f"say one of: {_ACTIONS}")
    return await run(call, words)


async def pin(call: Call, words: Sequence[str]) -> Result:
    """Keep a version's files; if it answers, let nothing take its place by itself."""
    s = call.services
    active = await s.registry.active()
    version = _one(words) if words else active
    if version == BASE:
        raise UsageError(
            "the base model is always there; `pause all` makes it answer and stops training until `resume`"
        )
    row = await s.registry.row(version)
    if row.tainted:
        raise AdapterError(f"v{version} is not to be used: {row.tainted}")
    await s.registry.path(version)
    await s.store.write(lambda db: versions.pin(db, version, s.clock.now()))
    text = f"v{version} is pinned: its files stay."
    if version == active:
        text += (
            " It stays the version that answers. Training goes on, but nothing new goes live until "
            "`adapters unpin`; only a rating behind it that is taken back, or damaged files, replace it."
        )
    else:
        text += f" It does not answer: `rollback {version}` lets it."
    return Result(text=text, data={"version": version, "pinned": True, "active": version == active})


async def unpin(call: Call, words: Sequence[str]) -> Result:
    """Let go of a version; what waited for it goes live, at once while the model server runs."""
    s = call.services
    pinned = [row.version for row in await s.registry.rows() if row.pinned]
    if not pinned:
        raise UsageError("no version is pinned")
    active = await s.registry.active()
    if not words and active not in pinned and len(pinned) > 1:
        which = ", ".join(f"v{version}" for version in pinned)
        raise UsageError(f"say which: {which} are pinned")
    version = _one(words) if words else active if active in pinned else pinned[0]
    if version not in pinned:
        raise UsageError(f"v{version} is not pinned")
    await s.store.write(lambda db: versions.pin(db, version, None))
    live, later = None, ""
    try:
        if s.server.healthy():
            live = await retention.go_live(s.store, s.registry)
    except ServerError as error:
        later = f" What waits is tried again soon: {error}."
    waiting = [row.version for row in await s.registry.rows() if row.waits == versions.PINNED]
    if waiting and not later:
        later = f" v{waiting[-1]} goes live when goodbot runs."
    told = f" {await _answering(call, live)}." if live is not None else later
    return Result(
        text=f"v{version} is no longer pinned.{told}",
        data={"version": version, "pinned": False, "live": live, "waiting": waiting},
    )


async def bring_in(call: Call, words: Sequence[str]) -> Result:
    """Record what `goodbot adapters import` has prepared, as a version that does not answer."""
    if not call.direct or len(words) != 1:
        raise UsageError("an adapter is imported in a terminal: `goodbot adapters import PATH`")
    s = call.services
    if s.scheduler.training:
        raise UsageError("a training is under way: import after it, or `goodbot train stop`")
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
        raise AdapterError(f"that is v{twin[0]}, byte for byte, which is not to be used: {twin[1]}")
    await s.store.write(lambda db: versions.add(db, row, registry.scope))
    return Result(
        text=f"v{version} is here, from {given.source}. It does not answer: `rollback {version}` lets it.",
        data={"version": version, "source": given.source, "sha256": row.sha256},
    )


_WITH_WORDS: Mapping[str, Callable[[Call, Sequence[str]], Awaitable[Result]]] = {
    "show": show,
    "diff": diff,
    "pin": pin,
    "unpin": unpin,
    "import": bring_in,
}


async def rollback(call: Call) -> Result:
    """To the parent of what answers now, to a version, to the base model, or without some ratings."""
    word, *rest = call.args or ("",)
    if leave := {"since": since, "answers": answers, "person": whose}.get(word):
        return await leave(call, tuple(rest))
    if word == "all":
        return await reset(replace(call, args=tuple(rest)))
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
            raise wrong(call.event, "wrong_rollback_base")
        return await registry.clean_ancestor((await registry.row(active)).parent)
    target = _to(call, args[0])
    if target and (row := await registry.row(target)).tainted:
        language = call.user.language
        why = retold(row.tainted, language)
        raise AdapterError(say("wrong_withdrawn", language, version=target, why=why))
    return target


async def _answering(call: Call, version: int) -> str:
    off = bool(await call.services.store.read(lambda db: settings.switch(db, "off")))
    return states.answering(version, off=off, language=call.user.language)


def _one(words: Sequence[str]) -> int:
    if len(words) != 1:
        raise UsageError("say one version: `adapters pin 7`")
    return version_of(words[0])


def _to(call: Call, word: str) -> int:
    try:
        return version_of(word)
    except UsageError:
        raise wrong(call.event, "wrong_rollback") from None
