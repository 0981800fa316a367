"""Runs commands: who may, what it did, and the audit trail of administrative ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from goodbot.authorization import Grant, person
from goodbot.commands.base import Call, Command, Result, Services, find
from goodbot.errors import GoodbotError, UsageError
from goodbot.events import ChannelKind, CommandEvent, Event, Outcome, Receipt
from goodbot.store import access, inbox


class Denied(GoodbotError):
    """This person may not use this command. The text is what they are told, often nothing."""


class CommandRunner:
    """Executes command events against the services of a running goodbot."""

    def __init__(self, table: Sequence[Command], services: Services) -> None:
        self._table = table
        self._services = services

    async def handle(self, event: Event) -> None:
        """Run a command of the inbox, close it there with its receipt, and acknowledge it."""
        assert isinstance(event, CommandEvent)  # noqa: S101  the dispatcher sorts
        try:
            result = await self.execute(event)
            receipt = Receipt(event_id=event.event_id, outcome=Outcome.ACCEPTED, text=result.text)
        except Denied as error:
            receipt = Receipt(event_id=event.event_id, outcome=Outcome.DENIED, text=str(error))
        except GoodbotError as error:
            receipt = Receipt(event_id=event.event_id, outcome=Outcome.FAILED, text=f"{error}.")
        await self._services.store.write(lambda db: inbox.close(db, event, receipt))
        await self._services.dispatcher.acknowledge(event, receipt)

    async def execute(self, event: CommandEvent) -> Result:
        """Run one command. Raises Denied, or a GoodbotError with a sentence."""
        command = find(self._table, event.name)
        if command is None:
            await self._require(event, Grant.TALK)
            raise UsageError(f"there is no command {event.name[:40]!r}: try `/rl help`")
        if command.grant is not Grant.ADMINISTER:
            await self._require(event, command.grant)
            return await self._run(command, event)
        allowed = self._services.authorization.may(event.user, Grant.ADMINISTER)
        detail: dict[str, Any] = {"args": event.args, "channel": event.channel.id}
        try:
            if not allowed:
                raise Denied("")
            result = await self._run(command, event)
            detail["done"] = result.text[:200]
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
        """Raise Denied unless the person has the grant here; a talker is told once who teaches."""
        authorization, store = self._services.authorization, self._services.store
        if authorization.may(event.user, grant):
            return
        enabled = await store.read(lambda db: access.channel_enabled(db, event.channel))
        talks = authorization.may_talk(event.user, event.channel, enabled=enabled)
        if talks and grant <= Grant.TALK:
            return
        if talks and await store.write(lambda db: access.tell_once(db, "rate " + person(event.user))):
            raise Denied("Only the people its owner has named teach this bot.")
        private = event.channel.kind is ChannelKind.PRIVATE
        if private and await store.write(lambda db: access.tell_once(db, person(event.user))):
            raise Denied(
                "This bot answers only the people its owner has named. "
                f"To be named, give the owner your id: {event.user.id}"
            )
        raise Denied("")
