# SPDX-License-Identifier: Apache-2.0
"""Runs commands: who may, what it did, and the audit trail of administrative ones."""

from __future__ import annotations

import asyncio
import functools
import importlib
import logging
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import aiosqlite

from goodbot.access import strangers
from goodbot.access.authorization import person
from goodbot.api import actions
from goodbot.api.commands import Command, Grant, find, of
from goodbot.api.events import ChannelKind, CommandEvent, Event, Outcome, PressEvent, Receipt
from goodbot.api.sentences import Reason, because, words
from goodbot.api.texts import ended, reworded
from goodbot.base.errors import GoodbotError, UsageError, boundary
from goodbot.commands import whose
from goodbot.commands.audit import NOT_ALLOWED, NOT_DONE, NOT_FINISHED, audit
from goodbot.commands.base import Call, Result, wrong
from goodbot.commands.late import LateCommands, key_of
from goodbot.store import channels, forgetting, inbox, joining

if TYPE_CHECKING:
    from goodbot.commands.services import Services

logger = logging.getLogger(__name__)

_AUDITED = 200
"""Characters of a refusal that the audit trail keeps."""

Later = Callable[[], Awaitable[Result]]


class DeniedError(GoodbotError):
    """This person may not use this command. The reason is what they are told, often nothing."""

    def __init__(self, reason: Reason | None = None) -> None:
        self.reason = reason
        super().__init__(words(reason))


class CommandRunner:
    """Executes command events against the services of a running goodbot."""

    def __init__(self, services: Services) -> None:
        at_machine = {one.name: one for one in of("terminal") if one.run and "chat" not in one.where}
        self._at_machine = at_machine
        self._run = {one.name: _does(one) for one in (*of("chat", old=True), *at_machine.values())}
        self._services = services
        self._waiting: set[asyncio.Task[None]] = set()
        self._said: dict[tuple[str, str, str], Later] = {}
        """What is still to be told of ratings that were stored when they were typed, by event."""
        self.late = LateCommands(services.store)

    async def handle(self, event: Event) -> None:
        """Run a command of the inbox, close it there with its receipt, and acknowledge it."""
        typed = actions.typed(event) if isinstance(event, PressEvent) else event
        assert isinstance(typed, CommandEvent)  # noqa: S101  the dispatcher sorts
        command = find(typed.name)
        forgotten = await self.late.forgotten(event)
        if command is not None and command.grant is Grant.ADMINISTER:
            # Done at most once: `rollback`, done again after a crash, would go back further.
            interrupted = event.receipt(Outcome.FAILED, because("interrupted"))
            await self._services.store.write(lambda db: inbox.close(db, event, interrupted))
        name = command.name if command else ""
        overtaken = forgotten or await self.late.overtaken(event, name, typed.args.split())
        work = self._not_done(typed) if overtaken else self.execute(typed)
        async with self.late.done(event):
            later = await self._answer(event, command, work)
        if later is not None:
            self._apart(self._later(event, command, later), "who waits")

    async def at_once(self, db: aiosqlite.Connection, event: Event) -> Receipt | None:
        """Store what a command says of an answer in the transaction in which the command comes in.

        So it stands before all that is said later, and means the answer that was the last one then,
        however long it waits until somebody is told. Returns None where it is to be told, after a crash,
        too; else the receipt of one that says nothing: later, it might say something of another answer.
        """
        typed = actions.typed(event) if isinstance(event, PressEvent) else event
        command = find(typed.name) if isinstance(typed, CommandEvent) else None
        if command is None or not command.rates or not isinstance(typed, CommandEvent):
            return None
        if not self._services.authorization.may(event.user, command.grant):
            return None
        call = Call(event=typed, args=tuple(typed.args.split()), services=self._services, within=db)
        try:
            said = await self._run[command.name](call)
        except UsageError as error:
            said = Result(text="", later=functools.partial(_refuse, error))
        if said.later is not None:
            self._said[key := key_of(event)] = said.later
            self._services.quotas.note(lambda: self._said.pop(key, None))  # where it is not committed
        return None if said.turn else event.receipt(Outcome.FAILED, because("interrupted"))

    async def _not_done(self, event: CommandEvent) -> Result:
        raise wrong(event, "interrupted")

    async def stop(self) -> None:
        """Let nobody wait any more for what a command comes to."""
        for task in list(self._waiting):
            task.cancel()
        await asyncio.gather(*self._waiting, return_exceptions=True)

    async def _later(self, event: Event, command: Command | None, work: Later) -> None:
        with boundary(logger, "a command that somebody waits for"):
            await self._answer(event, command, work())

    async def _answer(self, event: Event, command: Command | None, work: Awaitable[Result]) -> Later | None:
        """Tell what came of it; or nothing yet, and return what is to be waited for."""
        kept: Receipt | None = None
        try:
            result = await work
            if result.later is not None:
                return result.later
            receipt = Receipt(
                event_id=event.event_id,
                outcome=Outcome.ACCEPTED,
                text=result.text,
                turn=result.turn,
                offer=result.offer,
            )
            if result.once:
                kept = event.receipt(
                    Outcome.ACCEPTED, because("shown_once"), turn=result.turn, offer=result.offer
                )
        except DeniedError as error:
            receipt = event.receipt(Outcome.DENIED, error.reason)
        except GoodbotError as error:
            language = event.user.language
            said = ended(reworded(error, language), language)
            receipt = Receipt(event_id=event.event_id, outcome=Outcome.FAILED, text=said)
        except Exception:
            ids = {"event_id": event.event_id, "connector": event.user.connector}
            logger.exception("a command failed", extra=ids)
            receipt = event.receipt(Outcome.FAILED, because("broken"))
        if receipt.outcome is Outcome.DENIED and not receipt.text:  # a crowd costs little space
            now = self._services.clock.now()
            await self._services.store.write(lambda db: inbox.refuse(db, event, now))
        else:
            await self._services.store.write(lambda db: inbox.close(db, event, kept or receipt))
        personal = await self._is_personal(event, command, receipt)
        if personal and await self._services.courier.whisper(event, receipt):
            if not receipt.turn:
                return None
            receipt = replace(receipt, text="", offer=())  # of a rating the channel may see a nod
        await self._services.connectors.acknowledge(event, receipt)
        if receipt.outcome is Outcome.DENIED:
            self._apart(self._services.join_requests.ask(event, receipt), "join request")
        return None

    def _apart(self, work: Coroutine[Any, Any, None], name: str) -> None:
        """The commands behind this one do not wait for it."""
        task = asyncio.create_task(work, name=name)
        self._waiting.add(task)
        task.add_done_callback(self._waiting.discard)

    async def _is_personal(self, event: Event, command: Command | None, receipt: Receipt) -> bool:
        """Whether the channel is not to hear the answer.

        Where the bot is off, only an owner makes it speak.
        """
        if event.channel.kind is not ChannelKind.SHARED:
            return False
        if receipt.outcome is Outcome.DENIED or (command is not None and command.personal):
            return True
        if self._services.authorization.may(event.user, Grant.ADMINISTER):
            return False
        return not await self._may_talk(event)

    async def execute(self, event: CommandEvent, *, direct: bool = False) -> Result:
        """Run one command; `direct`: its caller asks back what is to be asked back.

        Raises DeniedError, or a GoodbotError with a sentence.
        """
        command = find(event.name) or (self._at_machine.get(event.name) if direct else None)
        if command is None:
            await self._require(event, Grant.TALK)
            raise wrong(event, "wrong_command", name=repr(event.name[:40]))
        call = Call(event=event, args=tuple(event.args.split()), services=self._services, direct=direct)
        said = self._said.pop(key_of(event), None)
        if command.grant is not Grant.ADMINISTER:
            await self._require(event, command.grant, own=command.own)
            result = await (said() if said else self._run[command.name](call))
            await self.late.said(event, command.name, call.args)
            return _renamed(result, command)
        detail: dict[str, Any] = {}
        try:
            if self._services.authorization.may(event.user, Grant.ADMINISTER):
                result = await self._run[command.name](call)
            elif alone := await whose.alone(call, command.name):
                result = await alone()
            else:
                raise DeniedError(await self._no_owner(event, command))
            # Not what it said: the trail outlives the words of others.
            detail["asked" if result.data.get("asked") else "done"] = True
        except DeniedError:
            detail["refused"] = NOT_ALLOWED
            raise
        except GoodbotError as error:
            said = error.english if isinstance(error, UsageError) else str(error)
            detail["refused"] = NOT_DONE if command.quotes else said[:_AUDITED]
            raise
        except BaseException:
            detail["refused"] = NOT_FINISHED
            raise
        finally:
            silent = replace(call, event=replace(event, args="")) if command.quotes else call
            await audit(silent, command.name, detail)
        return _renamed(result, command)

    async def _no_owner(self, event: CommandEvent, command: Command) -> Reason | None:
        """What somebody who is no owner is told; a stranger nothing."""
        if not self._services.authorization.may(event.user, Grant.TALK):
            return None
        told = strangers.who_administers
        return await self._services.store.write(lambda db: told(db, event.user, event.channel, command.name))

    async def _may_talk(self, event: Event) -> bool:
        s = self._services
        enabled = await s.store.read(lambda db: channels.enabled(db, event.channel))
        return s.authorization.may_talk(event.user, event.channel, enabled=enabled)

    async def _require(self, event: CommandEvent, grant: Grant, *, own: bool = False) -> None:
        """Raise DeniedError unless the person has the grant here; a talker is told who teaches.

        What is a person's `own` is in their hands while anything of it is stored.
        """
        authorization, store = self._services.authorization, self._services.store
        if authorization.may(event.user, grant):
            return
        talks = await self._may_talk(event)
        if talks and grant <= Grant.TALK:
            return
        if own and await self._has_own(event):
            return
        if talks or authorization.may(event.user, Grant.TALK):  # named, where the bot is off
            told = strangers.who_teaches
            raise DeniedError(await store.write(lambda db: told(db, event.user, event.channel)))
        if event.channel.kind is ChannelKind.PRIVATE and not event.looked:  # who looks asks nobody
            now = self._services.clock.now()
            raise DeniedError(await store.write(lambda db: strangers.who_talks(db, event.user, now)))
        raise DeniedError

    async def _has_own(self, event: CommandEvent) -> bool:
        """Whether anything of this person's is stored; a stranger may ask so often only."""
        store, who = self._services.store, person(event.user)
        if await store.read(lambda db: forgetting.knows(db, who)):
            return True
        if event.args.split() not in (["me"], ["me", "yes"]):
            return False
        asked = await store.read(lambda db: joining.remembers(db, who))
        return asked and self._services.quotas.codes.allow(who)  # an answer to each takes space


async def _refuse(error: UsageError) -> Result:
    raise error


def _renamed(result: Result, command: Command) -> Result:
    """With a line of its own where an old word was typed."""
    if not command.instead:
        return result
    return replace(result, text=f"{result.text}\n`{command.name}` is called `{command.instead}` now.")


def _does(command: Command) -> Callable[[Call], Awaitable[Result]]:
    module, _, function = command.run.partition(":")
    return getattr(importlib.import_module(f"goodbot.commands.{module}"), function)
