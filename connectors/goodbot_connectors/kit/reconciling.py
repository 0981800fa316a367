# SPDX-License-Identifier: Apache-2.0
"""Reactions that changed while we were away: asked for once after every start and outage.

For every platform that can be asked who reacted to a message.
"""

from __future__ import annotations

import logging
import uuid
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace

from goodbot.api.connector import OpenTurn
from goodbot.api.events import Event, MessageRef, OrderKey, RatingEvent, RatingKind, UserRef
from goodbot.base.errors import ConnectorError, FatalConnectorError, RetriableError

from goodbot_connectors.kit.lru import Recent

logger = logging.getLogger(__name__)

_AT_ONCE = 20
"""Messages that are asked about in one go, each half minute; platforms bear about 50 calls a minute."""
_TIMES = 4
"""So often in a row a message is asked about while it differs: what was found may not have been stored, or
been refused since it was not known yet who rates."""

Standing = set[tuple[str, str]]
"""User id and source of each reaction that rates."""


class Reconciler:
    """Compares a platform's reactions with those of the ledger, newest answers first."""

    def __init__(
        self,
        *,
        ask: Callable[[MessageRef], Awaitable[Standing]],
        value: Callable[[str], float | None],
        now_ms: Callable[[], int],
    ) -> None:
        """`ask` raises a plain ConnectorError for a message that cannot be read; `value` is a source's.

        `now_ms` is this machine's clock, or reckoned from it, and so `OrderKey.ours`: it may have jumped
        since the platform's was heard.
        """
        self._ask, self._value, self._now_ms = ask, value, now_ms
        self._due = False
        self._queue: deque[MessageRef] = deque()
        self._swept: Recent[str, None] = Recent()
        """Asked for only while answers are open; anybody may clear messages all day."""
        self._differs: dict[MessageRef, int] = {}
        """How often in a row something was found."""

    def again(self) -> None:
        """Something may have been missed."""
        self._due = True

    def look_at(self, message: str) -> None:
        """Something happened to this message's reactions that does not say to which."""
        self._swept[message] = None

    async def look(self, open_turns: Sequence[OpenTurn]) -> Sequence[Event]:
        """The next few differences, as events; none once all has been looked at."""
        known = {ref: turn for turn in open_turns for ref in turn.messages}
        self._differs = {ref: times for ref, times in self._differs.items() if ref in known}
        self._line_up([ref for turn in reversed(open_turns) for ref in turn.messages])
        found: list[Event] = []
        for _ in range(min(_AT_ONCE, len(self._queue))):
            ref = self._queue.popleft()
            if ref not in known:
                continue
            now_ms = self._now_ms()
            try:
                there = await self._ask(ref)
            except RetriableError as error:
                logger.info("reconciling goes on later: %s", error)
                self._queue.appendleft(ref)
                break
            except FatalConnectorError:
                raise
            except ConnectorError as error:  # deleted, or we have left the channel
                logger.info("the reactions of a message cannot be read: %s", error)
                continue
            before = {(user, source) for m, user, source in known[ref].reactions if m == ref.id}
            differences = list(self._differences(ref, there, before, now_ms))
            times = self._differs.pop(ref, 0) + 1
            if differences and times < _TIMES:
                self._differs[ref] = times
            found += differences
        return found

    def _line_up(self, refs: Sequence[MessageRef]) -> None:
        """What is asked next: all where something may have been missed, and what something happened to."""
        if self._due:
            self._due = False
            self._queue = deque(refs)
        swept, self._swept = self._swept, Recent[str, None]()
        again = (ref for ref in refs if ref.id in swept or ref in self._differs)
        self._queue.extend(ref for ref in again if ref not in self._queue)

    def _differences(
        self, ref: MessageRef, there: Standing, before: Standing, now_ms: int
    ) -> Iterator[Event]:
        for n, (user, source) in enumerate(sorted(there ^ before)):
            added = (user, source) in there
            place = replace(ref.channel, thread="")  # a reaction names no thread
            yield RatingEvent(
                # Each look is another: the clock may stand, and the same come, go and come again.
                event_id=f"seen:{place.id}:{ref.id}:{uuid.uuid4().hex}",
                order=OrderKey(now_ms, f"{n:04d}", ours=True),
                user=UserRef(connector=place.connector, account=place.account, id=user),
                channel=place,
                kind=RatingKind.RATE if added else RatingKind.RETRACT,
                message_id=ref.id,
                source=source,
                value=self._value(source) if added else None,
            )
