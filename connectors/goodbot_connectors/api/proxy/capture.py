# SPDX-License-Identifier: Apache-2.0
"""An answer that went by, as a turn."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field

from goodbot.api.chat_answers import BROKEN_OFF
from goodbot.api.completions import with_form, with_tools
from goodbot.api.events import CaptureEvent, Event, Outcome
from goodbot.api.turns import turn_id
from goodbot.base.errors import GoodbotError
from goodbot.base.sampling import UNFILTERED, Filters

from goodbot_connectors.api.proxy import kinds, sessions
from goodbot_connectors.api.proxy.dialects.shapes import ChatRequest, ChatResponse
from goodbot_connectors.api.proxy.sessions import ProxySession, ProxySessions
from goodbot_connectors.kit.bridge.clients import ApiClient
from goodbot_connectors.kit.bridge.local import LocalConnector

logger = logging.getLogger(__name__)

TURN = "X-Goodbot-Turn"
"""The header of a response that names its turn."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ProxyRequest:
    """One request of a program, and which turn its answer becomes."""

    client: ApiClient
    headers: Mapping[str, str]
    """In small letters."""
    chat: bool = True
    event_id: str = field(default_factory=lambda: f"proxy:{uuid.uuid4().hex}")


class Capture:
    """Keeps what programs were answered."""

    def __init__(self, connector: LocalConnector, seconds: float, *, on: bool) -> None:
        self._connector = connector
        self._on = on
        self._sessions = ProxySessions(connector.host.clock, seconds)

    def turn(self, call: ProxyRequest) -> str:
        """The id of the turn that the answer becomes; empty where nothing is captured."""
        if not self._on:
            return ""
        user = self._connector.user(call.client.name)
        channel = self._connector.channel(call.client.name)
        order = self._connector.order()
        return turn_id(Event(event_id=call.event_id, order=order, user=user, channel=channel))

    async def session(self, call: ProxyRequest, asked: ChatRequest) -> ProxySession:
        """The conversation that it belongs to."""
        return await self._sessions.of(call.client.name, call.headers, asked, call.event_id)

    async def keep(
        self,
        call: ProxyRequest,
        session: ProxySession,
        asked: ChatRequest,
        said: ChatResponse,
        *,
        raw: str | None = None,
        version: int | None = None,
        temperature: float | None = None,
        filters: Filters = UNFILTERED,
        lines: bool = False,
        form: str = "",
    ) -> str:
        """Store an answer; the turn that it became, empty where it became none. Never raises GoodbotError.

        `version` is of ours that wrote it, None for another model. `raw` is its text as it was written.
        """
        if not self._on or not asked.messages or said.finish in ("", *BROKEN_OFF):
            return ""
        client, turn = call.client.name, self.turn(call)
        event = CaptureEvent(
            event_id=call.event_id,
            order=self._connector.order(),
            user=self._connector.user(client),
            channel=self._connector.channel(client, session.id),
            messages=tuple(with_form(with_tools(asked.messages, asked.tools), form)),
            response=said.response(lines) if raw is None else raw,
            model=(said.model or asked.model)[:200],
            version=version,
            message_id=turn,
            # A trace would be a key to what other connectors have seen: not for every client.
            trace=sessions.trace(call.headers, said) if call.client.admin else "",
            kind=kinds.kind(call.headers, asked, said, session, chat=call.chat),
            temperature=_temperature(asked, temperature),
            prompt_tokens=said.prompt_tokens,
            tokens=said.tokens,
            logprobs=said.logprobs,
            thought=said.thought,
            thought_tokens=said.thought_tokens,
            filters=filters,
            lifts=said.lifts,
        )
        try:
            [receipt] = await self._connector.host.submit([event])
        except GoodbotError as error:  # the program has its answer all the same
            logger.error("an answer was not kept: %s", error, extra={"turn": turn})
            return ""
        finally:  # not before it: who hangs up meanwhile leaves an answer that is kept
            await self._sessions.answered(client, session, asked, said)
        if receipt.outcome is not Outcome.ACCEPTED:
            logger.warning(
                "an answer was not kept (%s): %s", receipt.outcome, receipt.text, extra={"turn": turn}
            )
            return ""
        return receipt.turn or turn


def _temperature(asked: ChatRequest, configured: float | None) -> float:
    """That of the request; an answer of the likeliest tokens has its log-probs at 1, as servers tell them."""
    given = configured if asked.temperature is None else asked.temperature
    return given if given and given > 0 else 1.0
