# SPDX-License-Identifier: Apache-2.0
"""Payloads on their way in: acknowledged when `host.submit` has committed, and never before.

Bolt parses and delivers; one middleware of ours takes every payload, before its authorization, which
acknowledges what it could not check. Its listeners would acknowledge an event before they have run.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import replace
from typing import Any

from goodbot.api.connector import ConnectorHost
from goodbot.api.events import Event, MessageEvent
from goodbot.base.errors import RetriableError, StoreError
from goodbot.base.tasks import end_tasks
from slack_bolt.app.async_app import AsyncApp
from slack_bolt.authorization import AuthorizeResult
from slack_bolt.response import BoltResponse

from goodbot_connectors.kit.fields import Json, string, sub
from goodbot_connectors.kit.lru import Recent, forget
from goodbot_connectors.slack.api import LOGGER
from goodbot_connectors.slack.identity import ActorOrigin, named
from goodbot_connectors.slack.members import Members
from goodbot_connectors.slack.normalize import Normalizer
from goodbot_connectors.slack.presses import Opening, actor, key, opening
from goodbot_connectors.slack.stream import Recipient

logger = logging.getLogger(__name__)


class Intake:
    """Takes the payloads of one account, and notes what an answer needs and an event does not hold."""

    def __init__(
        self,
        host: ConnectorHost,
        normalizer: Normalizer,
        members: Members,
        modal: Callable[[Opening], Coroutine[Any, Any, None]],
    ) -> None:
        self._host, self._normalizer, self._modal = host, normalizer, modal
        self._members = members
        self._taking: set[asyncio.Task[Any]] = set()
        self._asking: dict[str, asyncio.Task[None]] = {}
        """Who is asked about what they read."""
        self.askers: Recent[tuple[str, str], Recipient] = Recent()
        """Who wrote a message, by channel and `ts`."""
        self.offers: Recent[str, str] = Recent()
        """Where an ephemeral message can be taken away, by the id of the event of its press."""
        self._shared: Recent[str, bool] = Recent()
        """Channels where somebody of another company may be, as events tell it."""
        self.dropped = 0
        """How many payloads of people who are not known to be ours were left out."""

    def app(self) -> AsyncApp:
        """What a transport hands payloads to."""

        async def take(body: dict[str, Any], next_: Callable[[], Awaitable[Any]]) -> Any:
            if body.get("type") == "url_verification":
                return await next_()
            return await self._take(body)

        async def authorize() -> AuthorizeResult:
            return AuthorizeResult(enterprise_id=None, team_id=self._normalizer.me.team)

        return AsyncApp(
            name=f"{LOGGER.name}.app",
            logger=LOGGER,
            before_authorize=take,
            authorize=authorize,
            signing_secret="",
            request_verification_enabled=False,  # `transport.Http` verifies
            ignoring_self_events_enabled=False,
            attaching_function_token_enabled=False,
            attaching_conversation_kwargs_enabled=False,
        )

    async def stop(self) -> None:
        """Give up what is not stored yet: Slack sends it again."""
        if self.dropped > 1:
            logger.info("slack: %d payloads of others than our people were left out", self.dropped)
        self.dropped = 0
        under_way = [*self._taking, *self._asking.values()]
        await end_tasks(*under_way)

    def forget(self, user: str) -> None:
        """Know no message of this person any more, and not whose colleague they are."""
        forget(user, self.askers)
        self._members.forget(user)
        self._normalizer.threads.forget(user)

    async def submit(self, body: Json) -> None:
        """Store what a payload holds. Raises StoreError or RetriableError: nothing was stored."""
        await self._submit(body)

    async def _submit(self, body: Json) -> bool:
        """Store it; whether one of ours acts."""
        now_ms = int(self._host.clock.now() * 1000)
        events = self._normalizer.events(body, now_ms, proved=True)
        asked = opening(body, self._normalizer.me.user) is not None
        standing = self._standing(body)
        wanted = bool(events) or asked or standing is ActorOrigin.THEIRS
        if not wanted or not await self._ours(body, standing):
            return False
        self._note(body, events)
        if events:
            await self._host.submit(self._read_by(events))
        return True

    def _read_by(self, events: Sequence[Event]) -> list[Event]:
        """With what those people read, who are known to be ours, as far as Slack has told it.

        Whose it has not is asked about beside this: a message that waited would be overtaken by later ones.
        """
        read = {user: self._members.reads(user) for user in {one.user.id for one in events}}
        for user in read:
            if self._members.is_to_ask(user) and user not in self._asking:
                self._asking[user] = asyncio.create_task(self._ask(user), name="slack: language")
        return [replace(one, user=replace(one.user, language=read[one.user.id])) for one in events]

    async def _ask(self, user: str) -> None:
        try:
            await self._members.language(user)
        finally:
            del self._asking[user]

    def _standing(self, body: Json) -> ActorOrigin:
        """What the payload says; a slash command does not say whether its channel is shared."""
        standing, event = self._normalizer.me.standing(body), sub(body, "event")
        channel = string(event, "channel") or string(sub(event, "item"), "channel")
        if channel and "is_ext_shared_channel" in body:
            self._shared[channel] = bool(body["is_ext_shared_channel"])
        if standing is ActorOrigin.OURS and self._shared.get(string(body, "channel_id")):
            return ActorOrigin.UNPROVED
        return standing

    async def _ours(self, body: Json, standing: ActorOrigin) -> bool:
        """Whether one of ours acts. Slack is asked only where the payload does not prove it."""
        if standing is ActorOrigin.OURS:
            return True
        if standing is not ActorOrigin.THEIRS and await self._members.ours(actor(body)):
            return True
        self.dropped += 1
        if self.dropped == 1:
            logger.warning(
                "slack: somebody who is not known to be of this workspace (%s) is not answered; "
                "docs/platforms.md says who is; the next ones are only counted",
                ", ".join(named(body)) or "no team is named",
            )
        return False

    async def _take(self, body: dict[str, Any]) -> BoltResponse:
        """One payload. 200 is the acknowledgement; with anything else Slack sends it again."""
        task = asyncio.current_task()
        assert task is not None  # noqa: S101  always in a task
        self._taking.add(task)
        try:
            ours = await self._submit(body)
            asked = opening(body, self._normalizer.me.user)
            if asked is not None and ours:
                self._host.spawn(self._modal(asked), "slack modal")
        except (StoreError, RetriableError) as error:
            logger.error("slack: not acknowledged, Slack sends it again: %s", error)
            return BoltResponse(status=503)
        except Exception:
            logger.exception("slack: a payload could not be taken in")
            return BoltResponse(status=500)
        finally:
            self._taking.discard(task)
        return BoltResponse(status=200, body="")

    def _note(self, body: Json, events: Sequence[Event]) -> None:
        told = sub(body, "event")
        team = key(string(told, "team")) or self._normalizer.me.team
        for event in events:
            if isinstance(event, MessageEvent):
                asker = Recipient(user=event.user.id, team=team)
                self.askers[event.channel.id, event.message_id] = asker
                root = event.channel.thread
                began = event.user.id if root == event.message_id else key(string(told, "parent_user_id"))
                self._normalizer.threads.began(event.channel.id, root, began)
            elif sub(body, "container").get("is_ephemeral"):
                self.offers[event.event_id] = string(body, "response_url")
