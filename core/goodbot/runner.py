"""Runs commands: who may, what it did, and the audit trail of administrative ones."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from goodbot.authorization import Grant, person
from goodbot.commands.base import Call, Command, Result, Services, find
from goodbot.errors import GoodbotError, UsageError
from goodbot.events import ChannelKind, CommandEvent, Event, Outcome, Receipt
from goodbot.store import access, inbox

logger = logging.getLogger(__name__)

_AUDITED = 200
"""Characters of a command's words that the audit trail keeps."""
_INTERRUPTED = "goodbot stopped before this was done: look at `status`."
_FAILED = "Something went wrong here; the owner can find it in the log."


class DeniedError(GoodbotError):
    """This person may not use this command. The text is what they are told, often nothing."""


class CommandRunner:
    """Executes command events against the services of a running goodbot."""

    def __init__(self, table: Sequence[Command], services: Services) -> None:
        self._table = table
        self._services = services

    async def handle(self, event: Event) -> None:
        """Run a command of the inbox, close it there with its receipt, and acknowledge it."""
        assert isinstance(event, CommandEvent)  # noqa: S101  the dispatcher sorts
        command = find(self._table, event.name)
        if command is not None and command.grant is Grant.ADMINISTER:
            # Done at most once: `rollback`, done again after a crash, would go back further.
            await self._close(event, Outcome.FAILED, _INTERRUPTED)
        try:
            result = await self.execute(event)
            receipt = Receipt(event_id=event.event_id, outcome=Outcome.ACCEPTED, text=result.text)
        except DeniedError as error:
            receipt = Receipt(event_id=event.event_id, outcome=Outcome.DENIED, text=str(error))
        except GoodbotError as error:
            receipt = Receipt(event_id=event.event_id, outcome=Outcome.FAILED, text=f"{error}.")
        except Exception:
            logger.exception("the command %s failed", event.name[:40])
            receipt = Receipt(event_id=event.event_id, outcome=Outcome.FAILED, text=_FAILED)
        await self._services.store.write(lambda db: inbox.close(db, event, receipt))
        await self._services.dispatcher.acknowledge(event, receipt)

    async def _close(self, event: Event, outcome: Outcome, text: str) -> None:
        receipt = Receipt(event_id=event.event_id, outcome=outcome, text=text)
        await self._services.store.write(lambda db: inbox.close(db, event, receipt))

    async def execute(self, event: CommandEvent) -> Result:
        """Run one command. Raises DeniedError, or a GoodbotError with a sentence."""
        command = find(self._table, event.name)
        if command is None:
            await self._require(event, Grant.TALK)
            raise UsageError(f"there is no command {event.name[:40]!r}: try `/rl help`")
        if command.grant is not Grant.ADMINISTER:
            await self._require(event, command.grant)
            return await self._run(command, event)
        allowed = self._services.authorization.may(event.user, Grant.ADMINISTER)
        detail: dict[str, Any] = {"args": event.args[:_AUDITED], "channel": event.channel.id}
        try:
            if not allowed:
                raise DeniedError("")
            result = await self._run(command, event)
            detail["done"] = True  # not what it said: the trail outlives the words of others
        except GoodbotError as error:
            detail["refused"] = str(error) or "not on the allowlist"
            raise
        finally:
            await self._services.store.write(
                lambda db: access.record(
                    db, person(event.user), command.name, detail, self._services.clock.now()
                )
            )
        return result

    async def _run(self, command: Command, event: CommandEvent) -> Result:
        call = Call(event=event, args=tuple(event.args.split()), services=self._services)
        return await command.run(call)

    async def _require(self, event: CommandEvent, grant: Grant) -> None:
        """Raise DeniedError unless the person has the grant here; a talker is told once who teaches."""
        authorization, store = self._services.authorization, self._services.store
        if authorization.may(event.user, grant):
            return
        enabled = await store.read(lambda db: access.channel_enabled(db, event.channel))
        talks = authorization.may_talk(event.user, event.channel, enabled=enabled)
        if talks and grant <= Grant.TALK:
            return
        if talks and await store.write(
            lambda db: access.tell_once(db, "rate " + person(event.user))
        ):
            raise DeniedError("Only the people its owner has named teach this bot.")
        private = event.channel.kind is ChannelKind.PRIVATE
        if private and await store.write(lambda db: access.tell_once(db, person(event.user))):
            raise DeniedError(
                "This bot answers only the people its owner has named. "
                f"To be named, give the owner your id: {event.user.id}"
            )
        raise DeniedError("")
