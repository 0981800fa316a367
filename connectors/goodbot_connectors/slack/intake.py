"""Payloads on their way in: acknowledged when `host.submit` has committed, and never before.

Bolt parses and delivers; one middleware of ours takes every payload, before its authorization, which
acknowledges what it could not check. Its listeners would acknowledge an event before they have run.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any

from goodbot.connector import ConnectorHost
from goodbot.errors import StoreError
from goodbot.events import Event, MessageEvent
from slack_bolt.app.async_app import AsyncApp
from slack_bolt.authorization import AuthorizeResult
from slack_bolt.response import BoltResponse

from goodbot_connectors.fields import Json, string, sub
from goodbot_connectors.recent import Recent
from goodbot_connectors.slack.api import LOGGER
from goodbot_connectors.slack.normalize import Normalizer
from goodbot_connectors.slack.presses import Opening, key, opening
from goodbot_connectors.slack.stream import Recipient

logger = logging.getLogger(__name__)


class Intake:
    """Takes the payloads of one account, and notes what an answer needs and an event does not hold."""

    def __init__(
        self, host: ConnectorHost, normalizer: Normalizer,
        modal: Callable[[Opening], Coroutine[Any, Any, None]],
    ) -> None:  # fmt: skip
        self._host, self._normalizer, self._modal = host, normalizer, modal
        self._taking: set[asyncio.Task[Any]] = set()
        self.askers: Recent[tuple[str, str], Recipient] = Recent()
        """Who wrote a message, by channel and `ts`."""
        self.offers: Recent[str, str] = Recent()
        """Where an ephemeral message can be taken away, by the id of the event of its press."""

    def app(self) -> AsyncApp:
        """What a transport hands payloads to."""

        async def take(body: dict[str, Any], next_: Callable[[], Awaitable[Any]]) -> Any:
            if body.get("type") == "url_verification":
                return await next_()
            return await self._take(body)

        async def authorize() -> AuthorizeResult:
            return AuthorizeResult(enterprise_id=None, team_id=self._normalizer.me.team)

        return AsyncApp(
            name=f"{LOGGER.name}.app", logger=LOGGER, before_authorize=take, authorize=authorize,
            signing_secret="", request_verification_enabled=False,  # `transport.Http` verifies
            ignoring_self_events_enabled=False, attaching_function_token_enabled=False,
            attaching_conversation_kwargs_enabled=False,
        )  # fmt: skip

    async def stop(self) -> None:
        """Give up what is not stored yet: Slack sends it again."""
        for task in list(self._taking):
            task.cancel()
        await asyncio.gather(*self._taking, return_exceptions=True)

    async def submit(self, body: Json) -> None:
        """Store what a payload holds. Raises StoreError when nothing was stored."""
        events = self._normalizer.events(body, int(self._host.clock.now() * 1000))
        self._note(body, events)
        if events:
            await self._host.submit(events)

    async def _take(self, body: dict[str, Any]) -> BoltResponse:
        """One payload. 200 is the acknowledgement; with anything else Slack sends it again."""
        task = asyncio.current_task()
        assert task is not None  # noqa: S101  always in a task
        self._taking.add(task)
        try:
            await self.submit(body)
            asked = opening(body, self._normalizer.me.user)
            if asked is not None and not self._normalizer.me.foreign(body):
                self._host.spawn(self._modal(asked), "slack modal")
        except StoreError as error:
            logger.error("slack: not acknowledged, Slack sends it again: %s", error)
            return BoltResponse(status=503)
        except Exception:
            logger.exception("slack: a payload could not be taken in")
            return BoltResponse(status=500)
        finally:
            self._taking.discard(task)
        return BoltResponse(status=200, body="")

    def _note(self, body: Json, events: Sequence[Event]) -> None:
        team = key(string(sub(body, "event"), "team")) or self._normalizer.me.team
        for event in events:
            if isinstance(event, MessageEvent):
                asker = Recipient(user=event.user.id, team=team)
                self.askers[event.channel.id, event.message_id] = asker
            elif sub(body, "container").get("is_ephemeral"):
                self.offers[event.event_id] = string(body, "response_url")
