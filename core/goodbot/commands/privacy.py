# SPDX-License-Identifier: Apache-2.0
"""share (private chats), forget."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import aiosqlite

from goodbot.access import linking
from goodbot.access.authorization import origin, person
from goodbot.api.commands import Grant
from goodbot.base.errors import GoodbotError, UsageError
from goodbot.commands import confirm
from goodbot.commands.audit import name
from goodbot.commands.base import Call, Result
from goodbot.config.layout import beside, replaced
from goodbot.learning.adapters.erasure import delete_replaced
from goodbot.store import exporting, forgetting, people, settings

if TYPE_CHECKING:
    from goodbot.commands.services import Services

_FORGET = "type `forget me`"
_FORGET_ANYBODY = f"{_FORGET}, or `forget PERSON` (CONNECTOR:ID, see `people`)"


async def share(call: Call) -> Result:
    if call.args not in (("on",), ("off",)):
        raise UsageError(
            "type `share on` or `share off`: whether your private chats may train what others talk to"
        )
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
    of = f" (those of {', '.join(accounts)})" if len(accounts) > 1 else ""
    return Result(text=f"Your private chats{of} {'may' if on else 'do not'} train what others talk to.")


async def forget(call: Call) -> Result:
    """All of a person's words and ratings, and what was learnt from them."""
    s = call.services
    administers = s.authorization.may(call.user, Grant.ADMINISTER)
    if len(call.args) not in (1, 2) or call.args[1:] not in ((), ("yes",)):
        raise UsageError(_FORGET_ANYBODY if administers else _FORGET)
    word, sure = call.args[0], bool(call.args[1:])
    who = person(call.user) if word == "me" else word
    if who != person(call.user) and not administers:
        raise UsageError(f"{_FORGET}: only an owner lets others be forgotten")
    connector, _, id_ = who.partition(":")
    known = connector in s.authorization.connectors or await s.store.read(
        lambda db: forgetting.knows(db, who)
    )
    if not id_ or not known:  # of a platform that is off, or brought in, words may lie here all the same
        raise UsageError(_FORGET_ANYBODY)
    what = f"forget {who}"
    if not confirm.agreed(call, what, sure=sure, programs=True):
        return confirm.ask(
            call,
            what,
            await _question(call, who, word, owner=administers),
            command=f"forget {word} yes",
            label="Yes, delete it all",
            personal=True,
        )
    return await _forget(call, who)


async def _question(call: Call, who: str, word: str, *, owner: bool) -> str:
    accounts = await call.services.store.read(lambda db: people.accounts(db, who))
    whose = "you" if word == "me" else who
    several = f", of all {len(accounts)} linked accounts" if len(accounts) > 1 else ""
    return (
        f"This deletes what is stored of {whose}: words, answers, ratings{several}. Adapters that "
        "learnt from them are withdrawn or trained anew, and erased. It cannot be undone."
        f"{replaced(call.services.config.home) if owner else ''}"
    )


async def _forget(call: Call, who: str) -> Result:
    s, now = call.services, call.services.clock.now()
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
    await s.authorization.refresh(s.store)
    for account in accounts:
        s.dispatcher.requests.names.pop(account, None)
    if done.ended_run:
        await s.scheduler.stop()
    s.scheduler.wake()
    try:
        exported = await asyncio.to_thread(exporting.files, s.config.home)
        await s.eraser.sweep()
        note = " What was exported is deleted too." if exported else ""
    except (GoodbotError, OSError) as error:  # it goes on by itself
        note = f" Wiping the disk waits: {error}."
    note += await asyncio.to_thread(
        _copies, s.config.home, owner=s.authorization.may(call.user, Grant.ADMINISTER)
    )
    return Result(text=_told(done, keeps, last_owner=last_owner) + note, data=_data(done))


def _last_owner(s: Services, accounts: list[str]) -> bool:
    """Whether nobody else owns the bot from a chat: then forgetting them must not lock it."""
    owners = [who for who in s.authorization.owners() if not who.startswith("terminal:")]
    return bool(owners) and set(owners) <= set(accounts)


def _told(done: forgetting.Forgotten, keeps: list[str], *, last_owner: bool) -> str:
    sentences = [f"{_count(done.answers, 'answer')}, {_count(done.ratings, 'rating')} deleted."]
    if done.quoted:
        sentences.append(f"{_count(done.quoted, 'answer')} to others quoted them and went too.")
    if done.versions:
        names = " and ".join(f"v{version}" for version in done.versions)
        one = len(done.versions) == 1
        sentences.append(
            f"{names} {'was' if one else 'were'} trained on them and {'is' if one else 'are'} "
            "withdrawn or trained anew, then erased."
        )
    if last_owner:
        sentences.append("The grants stay: there is no other owner.")
    elif keeps:
        sentences.append(f"The grant of {' and '.join(keeps)} stays: it says more than yours.")
    return " ".join(sentences)


def _copies(home: Path, *, owner: bool) -> str:
    """Where else the words are, and what of it is deleted. That is for owners to do and to know."""
    backups = "Backups that were made before still hold it"
    if not beside(home):
        return f" {backups}: delete them."
    if not owner:
        return f" {backups}, and so does what a restore has replaced: ask an owner to delete them."
    try:
        gone = ", ".join(str(path) for path in delete_replaced(home))
    except OSError as error:
        return f" {error.filename} holds it, too, and cannot be deleted: {error.strerror}. {backups}."
    what = f" What a restore has replaced is deleted, too ({gone})." if gone else ""
    return f"{what} {backups}: delete them."


def _data(done: forgetting.Forgotten) -> dict[str, object]:
    return {
        "answers": done.answers,
        "ratings": done.ratings,
        "quoted": done.quoted,
        "versions": list(done.versions),
    }


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
