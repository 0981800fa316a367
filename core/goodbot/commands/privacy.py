# SPDX-License-Identifier: Apache-2.0
"""share (private chats), forget."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING

import aiosqlite

from goodbot.access import linking
from goodbot.access.authorization import origin, person
from goodbot.api.commands import Grant
from goodbot.api.texts import commas, joined, say
from goodbot.base.errors import GoodbotError
from goodbot.commands import confirm
from goodbot.commands.audit import name
from goodbot.commands.base import Call, Result, wrong
from goodbot.config.layout import beside
from goodbot.learning.adapters.erasure import delete_replaced
from goodbot.learning.training.folders import RunFolders
from goodbot.store import exporting, forgetting, inbox, joining, people, settings

if TYPE_CHECKING:
    from goodbot.commands.services import Services


async def share(call: Call) -> Result:
    if call.args not in (("on",), ("off",)):
        raise wrong(call.event, "wrong_share")
    on = call.args == ("on",)
    s, who = call.services, person(call.user)

    async def operation(db: aiosqlite.Connection) -> list[str]:
        # An owner says it for all that is theirs at this machine; a program only for itself.
        all_here = s.authorization.may(call.user, Grant.ADMINISTER)
        accounts = await linking.here(db, s.authorization, who) if all_here else [who]
        for account in accounts:
            await settings.set_share(db, account, on, s.clock.now(), own=account == who)
        return accounts

    accounts = await s.store.write(operation)
    s.scheduler.wake()
    language = call.user.language
    if len(accounts) == 1:
        return Result(text=say("shared" if on else "unshared", language))
    key = "shared_of" if on else "unshared_of"
    return Result(text=say(key, language, accounts=commas(language, *accounts)))


async def forget(call: Call) -> Result:
    """All of a person's words and ratings, and what was learnt from them."""
    s = call.services
    administers = s.authorization.may(call.user, Grant.ADMINISTER)
    if len(call.args) not in (1, 2) or call.args[1:] not in ((), ("yes",)):
        raise wrong(call.event, "wrong_forget_anybody" if administers else "wrong_forget")
    word, sure = call.args[0], bool(call.args[1:])
    who = person(call.user) if word == "me" else word
    if who != person(call.user) and not administers:
        raise wrong(call.event, "wrong_forget_others")
    connector, _, id_ = who.partition(":")
    known = connector in s.authorization.connectors or await s.store.read(
        lambda db: forgetting.knows(db, who)
    )
    if not id_ or not known:  # of a platform that is off, or brought in, words may lie here all the same
        raise wrong(call.event, "wrong_forget_anybody")
    what = f"forget {who}"
    if not confirm.agreed(call, what, sure=sure, programs=True):
        return confirm.ask(
            call,
            what,
            await _question(call, who, word, owner=administers),
            command=f"forget {word} yes",
            label=say("button_forget", call.user.language),
            personal=True,
        )
    stranger = word == "me" and not s.authorization.may(call.user, Grant.TALK)
    if stranger and not await s.store.read(lambda db: forgetting.knows(db, who)):
        return await _forget_request(call, who)
    return await _forget(call, who)


async def _forget_request(call: Call, who: str) -> Result:
    """Of who has only asked to talk: nothing has learnt from them, and no file holds them."""
    s, (name_, _, id_) = call.services, who.partition(":")
    if (connector := s.connectors.running.get(name_)) is not None:
        await connector.forget(id_)  # first: where it cannot, they may ask again

    async def operation(db: aiosqlite.Connection) -> None:
        await joining.forget(db, who)
        await inbox.forget_told(db, who)

    await s.store.write(operation)
    return Result(text=say("forgot_request", call.user.language))


async def _question(call: Call, who: str, word: str, *, owner: bool) -> str:
    accounts = await call.services.store.read(lambda db: people.accounts(db, who))
    language, count = call.user.language, len(accounts)
    if word == "me":
        told = say("ask_forget_me_all" if count > 1 else "ask_forget_me", language, count=count)
    else:
        told = say("ask_forget_all" if count > 1 else "ask_forget", language, who=who, count=count)
    paths = [str(path) for path in beside(call.services.config.home)] if owner else []
    gone = say("ask_forget_replaced", language, paths=commas(language, *paths)) if paths else ""
    return joined(language, told, say("ask_forget_learnt", language), gone)


async def _forget(call: Call, who: str) -> Result:
    s, now, language = call.services, call.services.clock.now(), call.user.language
    accounts = await s.store.read(lambda db: people.accounts(db, who))
    last_owner = _last_owner(s, accounts)
    # Linking gives no power over what another account may, so neither does forgetting.
    level, level_of = s.authorization.level(call.user), s.authorization.level_of
    keeps = [account for account in accounts if last_owner or level_of(account) > level]
    # Who teaches without being asked would, without their `share off`.
    named = s.authorization.owners(granted=False)
    silent = [
        one
        for one in accounts
        if one in (*keeps, *named) or origin(one) in named or s.authorization.is_local(one)
    ]

    async def operation(db: aiosqlite.Connection) -> forgetting.Forgotten:
        actor, of = await name(db, call, person(call.user)), await name(db, call, who)
        own = await linking.adopted(db, accounts)
        await inbox.close(db, call.event)  # what asks for it is nothing that was stored
        done = await forgetting.forget(
            db, s.registry.scope, s.model.name, who, keep_grants=keeps, keep_silent=silent
        )
        await linking.put_back(db, s.authorization, s.registry.scope, accounts, own, now)
        detail = {
            "of": of,
            "answers": done.answers,
            "ratings": done.ratings,
            "quoted": done.quoted,
            "versions": list(done.versions),
        }
        await settings.record(db, actor, "forget", detail, now)
        return done

    done = await s.store.write(operation)
    await s.scopes.tidy()  # nothing that they alone have taught stays in the model's memory
    await s.plugins.on_forgotten(done.people)
    await s.authorization.refresh(s.store)
    if done.ended_run:
        await s.scheduler.stop()
    try:
        await RunFolders(s.config.home).remove_ended(s.store)
        exported = await asyncio.to_thread(exporting.files, s.config.home)
        await s.eraser.sweep()
        exported = [path for path in exported if not path.exists()]
        note = say("forgot_exported", language) if exported else ""
    except (GoodbotError, OSError) as error:  # it goes on by itself
        note = say("forgot_later", language, why=error)
    finally:
        s.scheduler.wake()  # a training that begins reads the database, which is then not rewritten
    owner = s.authorization.may(call.user, Grant.ADMINISTER)
    copies = await asyncio.to_thread(_copies, s.config.home, language, owner=owner)
    told = _told(done, keeps, language, last_owner=last_owner)
    return Result(text=joined(language, *told, note, copies), data=_data(done))


def _last_owner(s: Services, accounts: list[str]) -> bool:
    """Whether nobody else owns the bot from a chat: then forgetting them must not lock it."""
    owners = [who for who in s.authorization.owners() if not who.startswith("terminal:")]
    return bool(owners) and set(owners) <= set(accounts)


def _told(done: forgetting.Forgotten, keeps: list[str], language: str, *, last_owner: bool) -> Iterator[str]:
    answers = say("count_answers", language, answers=done.answers)
    yield say("forgot", language, answers=answers, ratings=say("count_ratings", language, count=done.ratings))
    if done.quoted:
        yield say("forgot_quoted", language, count=done.quoted)
    if done.versions:
        names = _listed([f"v{version}" for version in done.versions], language)
        key = "forgot_versions" if len(done.versions) > 1 else "forgot_version"
        yield say(key, language, versions=names)
    if last_owner:
        yield say("forgot_last_owner", language)
    elif keeps:
        yield say("forgot_keeps", language, accounts=_listed(keeps, language))


def _listed(names: Sequence[str], language: str) -> str:
    """`v1 and v2`."""
    return reduce(lambda one, other: say("and_also", language, first=one, second=other), names)


def _copies(home: Path, language: str, *, owner: bool) -> str:
    """Where else the words are, and what of it is deleted. That is for owners to do and to know."""
    if not beside(home):
        return say("copies_delete", language)
    if not owner:
        return say("copies_ask", language)
    try:
        gone = commas(language, *(str(path) for path in delete_replaced(home)))
    except OSError as error:
        stuck = say("copies_stuck", language, path=error.filename, why=error.strerror)
        return joined(language, stuck, say("copies_kept", language))
    what = say("copies_gone", language, paths=gone) if gone else ""
    return joined(language, what, say("copies_delete", language))


def _data(done: forgetting.Forgotten) -> dict[str, object]:
    return {
        "answers": done.answers,
        "ratings": done.ratings,
        "quoted": done.quoted,
        "versions": list(done.versions),
    }
