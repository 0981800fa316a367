# SPDX-License-Identifier: Apache-2.0
"""people, pair: who may talk, rate and administer."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from datetime import datetime

import aiosqlite

from goodbot import config
from goodbot.access import linking, pairing
from goodbot.access.authorization import LEVELS, WEB, Granted, person
from goodbot.api.texts import commas, joined, say
from goodbot.api.texts.terminal import instead
from goodbot.base.errors import GoodbotError, UsageError
from goodbot.base.suggest import TERMINAL
from goodbot.commands.base import Call, Result, wrong
from goodbot.store import joining, news, people, raters, settings, turns


async def list_or_change(call: Call) -> Result:
    match call.args:
        case () | ("list",):
            return _list(call)
        case ("grant", role, *rest) if role in people.ROLES and len(rest) <= 1:
            return await _grant(call, role, await _person(call, rest))
        case ("refuse", who):
            named = await _person(call, [who])
            if call.services.authorization.level_of(named):
                raise wrong(call.event, "wrong_refuse", who=named)
            await call.services.store.write(lambda db: _refused(db, named))
            return Result(text=say("refused_person", call.user.language, who=named))
        case ("revoke", *rest) if len(rest) <= 1:
            return await _revoke(call, await _person(call, rest))
        case ("link" | "unlink" as deed, who):
            return await _own(call, await _person(call, [who]), joins=deed == "link")
        case _:
            raise wrong(call.event, "wrong_people")


async def _refused(db: aiosqlite.Connection, who: str) -> None:
    await settings.tell_once(db, f"{raters.REFUSED}{who}")
    await joining.decided(db, who)


def _list(call: Call) -> Result:
    entries, language = call.services.authorization.people(), call.user.language
    groups = [
        f"rater    {say('group_members', language, group=group, connector=name)}"
        for name, grants in call.services.authorization.connectors.items()
        for group in grants.rater_groups
    ]
    lines = [f"{entry.role:8} {entry.person}  {granted_by(entry, language)}" for entry in entries]
    return Result(
        text="\n".join([*lines, *groups]) or say("people_none", language),
        data={"people": [asdict(entry) for entry in entries]},
    )


def granted_by(entry: Granted, language: str = "") -> str:
    """By whom or what somebody has a role, and since when."""
    key = f"given_{entry.source}"
    if entry.since is None or entry.source not in ("paired", "granted"):
        return say(key, language, who=entry.by)
    day = datetime.fromtimestamp(entry.since).date()  # noqa: DTZ006  the owner's clock
    return say(f"{key}_on", language, who=entry.by, day=day.isoformat())


async def _grant(call: Call, role: str, who: str) -> Result:
    s = call.services
    by, now = person(call.user), s.clock.now()
    _refuse_to_lower_oneself(call, who, role)

    async def operation(db: aiosqlite.Connection) -> None:
        await people.grant(db, who, role, by, now)

    await s.store.write(operation)
    await s.authorization.refresh(s.store)
    more = [e for e in s.authorization.people() if e.person == who and LEVELS[e.role] > LEVELS[role]]
    language = call.user.language
    still = added = ""
    if more:
        role_, source = more[0].role, say(f"given_{more[0].source}", language, who=more[0].by)
        still = say("granted_more", language, role=role_, source=source)
    if who not in await s.store.read(lambda db: people.accounts(db, by)):
        goes_on = await s.store.read(lambda db: news.goes_on(db, s.pool, by))
        added = say("person_added" if goes_on else "person_added_waits", language)
    told = say(f"granted_as_{role}", language, who=who)
    return Result(text=joined(language, told, still, added), data={"person": who, "role": role})


async def _own(call: Call, who: str, *, joins: bool) -> Result:
    """An account of this machine is one person with its owner, or one of its own."""
    s, by, now = call.services, person(call.user), call.services.clock.now()
    if call.user.connector != TERMINAL:
        raise wrong(call.event, "wrong_own_machine")
    if not s.authorization.is_local(who) or who == by:
        raise wrong(call.event, "wrong_own", who=who)

    async def operation(db: aiosqlite.Connection) -> bool:
        if joins:
            await linking.adopt(db, s.authorization, s.registry.scope, by, who, now)
        else:
            await linking.part(db, s.authorization, s.registry.scope, who, now)
        return await settings.withholds(db, [who])

    silent = await s.store.write(operation)
    s.scheduler.wake()
    key = ("own_silent" if silent else "own_joined") if joins else "own_apart"
    return Result(text=say(key, call.user.language, who=who))


async def _revoke(call: Call, who: str) -> Result:
    s = call.services
    _refuse_to_lower_oneself(call, who, "")

    async def operation(db: aiosqlite.Connection) -> bool:
        await settings.tell_once(db, f"{raters.REFUSED}{who}")  # else they ask again by what they once wrote
        return await people.revoke(db, who)

    done = await s.store.write(operation)
    await s.authorization.refresh(s.store)
    left = [entry for entry in s.authorization.people() if entry.person == who]
    if left:
        raise _stays(call, left[0], done=done)
    if not done:
        raise wrong(call.event, "wrong_revoke", who=who)
    return Result(text=say("revoked", call.user.language, who=who), data={"person": who})


def _stays(call: Call, entry: Granted, *, done: bool) -> GoodbotError:
    """Why a grant does not end by a command, and what ends it."""
    connector, _, id_ = entry.person.partition(":")
    language, key = call.user.language, f"{entry.role}s"
    in_config = entry.source != "group" and connector in call.services.config.connectors
    if entry.source == "group":
        why = say("revoke_group", language, who=entry.person, group=entry.by)
    elif in_config:
        why = say("revoke_config", language, id=id_, key=key)
    else:
        why = say("revoke_program", language, who=entry.person, role=entry.role)
    if done:
        why = say("revoke_but", language, why=why)
    where = call.services.config.where(f"connectors.{connector}")
    return where.error(key, why) if in_config else UsageError(why)


def _refuse_to_lower_oneself(call: Call, who: str, role: str) -> None:
    """Nobody locks themselves out by a slip; another owner can."""
    if who == person(call.user) and role != "owner":
        raise wrong(call.event, "wrong_own_ownership")


async def _person(call: Call, words: list[str]) -> str:
    """The person that is meant: by id, never by name."""
    s = call.services
    if not words and call.event.reply_to:
        answer = await s.store.read(lambda db: turns.by_message(db, call.event.channel, call.event.reply_to))
        turn = await s.store.read(lambda db: turns.get(db, answer)) if answer else None
        if turn is None:
            raise wrong(call.event, "wrong_message")
        return person(turn.talker)
    if not words:
        raise wrong(call.event, "wrong_people")
    own = call.user.connector
    if own != TERMINAL and words[0].isalnum() and any(sign.isdecimal() for sign in words[0]):
        return f"{own}:{words[0]}"  # an id of their own platform, as it shows it; a name may be all letters
    connector, colon, id_ = words[0].partition(":")
    if not (colon and id_ and id_.isprintable() and len(id_) <= 200):
        raise wrong(call.event, "wrong_people")
    if connector not in s.authorization.connectors:
        known = instead(connector, s.authorization.connectors, call.user.language)
        name = repr(connector[:40])
        raise UsageError(say("no_connector", call.user.language, name=name, instead=known))
    return words[0]


async def pair(call: Call) -> Result:
    """A one-time code, at the machine itself only: whoever can use it there owns the bot anyway."""
    s, language = call.services, call.user.language
    if call.user.connector != TERMINAL:
        raise UsageError(say("pair_here", language))
    if call.args == (WEB,):
        raise UsageError(say("pair_web", language))
    # One that was set up while we run is in the file only; its code waits for the restart.
    settings = await asyncio.to_thread(config.load, s.config.home, s.config.path)
    written = settings.connectors
    installed = s.plugins.connectors().keys() & written.keys()
    known = sorted({*s.authorization.connectors, *installed} - {TERMINAL, WEB})
    wanted = call.args or (known if len(known) == 1 else ())
    if len(wanted) != 1 or wanted[0] not in known:
        key = "pair_which" if known else "pair_none"
        raise UsageError(say(key, language, names=commas(language, *known)))
    connector = wanted[0]
    code = await pairing.open_code(s.store, connector, s.clock.now())
    key = "pair_send" if connector in s.authorization.connectors else "pair_send_restart"
    return Result(
        text=f"{code}\n\n{say(key, language, connector=connector)}",
        data={"code": code, "connector": connector, "seconds": pairing.PAIR_SECONDS},
        once=True,
    )
