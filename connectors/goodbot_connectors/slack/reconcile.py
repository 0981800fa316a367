"""Reactions that changed while we were away: asked for once after every start and outage."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterator, Mapping, Sequence

from goodbot.clock import Clock
from goodbot.connector import OpenTurn
from goodbot.errors import RetriableError
from goodbot.events import (
    ChannelRef,
    Event,
    MessageRef,
    OrderKey,
    RatingEvent,
    RatingKind,
    UserRef,
)

from goodbot_connectors.fields import Json, items, string, strings, sub
from goodbot_connectors.slack.api import Api, RefusedError
from goodbot_connectors.slack.emoji import emoji_key
from goodbot_connectors.slack.identity import Identity
from goodbot_connectors.slack.normalize import CONNECTOR
from goodbot_connectors.slack.presses import key

logger = logging.getLogger(__name__)

_AT_ONCE = 20
"""Messages that are asked about in one go, each half minute; Slack bears 50 calls a minute."""


class Reconciler:
    """Compares Slack's reactions with those of the ledger, newest answers first."""

    def __init__(self, clock: Clock, values: Mapping[str, float]) -> None:
        self._clock, self._values = clock, values
        self._me = Identity(user="", team="")
        self._due = False
        self._queue: deque[MessageRef] = deque()

    def begin(self, me: Identity) -> None:
        """We have just started."""
        self._me = me
        self.again()

    def again(self) -> None:
        """Something may have been missed."""
        self._due = True

    async def look(self, api: Api, open_turns: Sequence[OpenTurn]) -> Sequence[Event]:
        """The next few differences, as events; none once all has been looked at."""
        if self._due:
            self._due = False
            self._queue = deque(ref for turn in reversed(open_turns) for ref in turn.messages)
        known = {ref: turn for turn in open_turns for ref in turn.messages}
        found: list[Event] = []
        for _ in range(min(_AT_ONCE, len(self._queue))):
            ref = self._queue.popleft()
            if ref not in known:
                continue
            now_ms = int(self._clock.now() * 1000)
            try:
                answer = await api.call(
                    "reactions.get", channel=ref.channel.id, timestamp=ref.id, full="true"
                )
            except RefusedError as error:  # deleted, or we have left the channel
                logger.info("slack: the reactions of a message cannot be read: %s", error.code)
                continue
            except RetriableError as error:
                logger.info("slack: reconciling goes on later: %s", error)
                self._queue.appendleft(ref)
                break
            there = set(self._present(sub(answer, "message")))
            before = {(u, s) for m, u, s in known[ref].reactions if m == ref.id}
            found += self._differences(ref, there, before, now_ms)
        return found

    def _present(self, message: Json) -> Iterator[tuple[str, str]]:
        """Who reacts with what now, where that is a rating."""
        for reaction in items(message, "reactions"):
            name = string(reaction, "name")
            if emoji_key(name) in self._values:
                for user in map(key, strings(reaction, "users")):
                    if user and user != self._me.user:
                        yield user, f"reaction:{name}"

    def _differences(
        self,
        ref: MessageRef,
        there: set[tuple[str, str]],
        before: set[tuple[str, str]],
        now_ms: int,
    ) -> Iterator[Event]:
        for n, (user, source) in enumerate(sorted(there ^ before)):
            value = self._values.get(emoji_key(source.removeprefix("reaction:")))
            added = (user, source) in there
            place = ChannelRef(
                connector=CONNECTOR, account=self._me.account, id=ref.channel.id,
                kind=ref.channel.kind,
            )  # fmt: skip
            yield RatingEvent(
                event_id=f"seen:{now_ms}:{ref.channel.id}:{ref.id}:{n}",
                order=OrderKey(now_ms, f"{n:04d}"),
                user=UserRef(connector=CONNECTOR, account=self._me.account, id=user),
                channel=place, kind=RatingKind.RATE if added else RatingKind.RETRACT,
                message_id=ref.id, source=source, value=value if added else None,
            )  # fmt: skip
