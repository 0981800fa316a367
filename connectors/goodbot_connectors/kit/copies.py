# SPDX-License-Identifier: Apache-2.0
"""Whether a message is a copy of an answer that was sent again: `Connector.copied` by what stands there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Any

from goodbot.api.connector import SentAnswer
from goodbot.api.events import MessageRef

from goodbot_connectors.kit.lru import Recent


class FirstCopies:
    """Of one account. The platform is asked for a message once, and only where it may be a copy."""

    def __init__(self, when: Callable[[str], Any]) -> None:
        """`when` orders messages by their ids: a first copy stands between the question and the last one."""
        self._when = when
        self._read = Recent[tuple[str, str], str]()
        """What stands in messages that we did not know."""

    def forget(self) -> None:
        """What was read may be somebody's words who is forgotten: a platform can be asked again."""
        self._read.clear()

    async def of(
        self,
        message: MessageRef,
        answers: Sequence[SentAnswer],
        *,
        words: Callable[[Sequence[SentAnswer]], Awaitable[str]],
        parts: Callable[[str], Collection[str]],
    ) -> str:
        """The turn of the one answer that it is a copy of; empty for none, and for several.

        `words`: what stands there now, empty where it is not ours, or gone; told which answers it may
        be of. `parts`: the words of the messages that an answer becomes.
        """
        when, at = self._when, self._when(message.id)
        around = [
            one
            for one in answers
            if one.question and when(one.question) < at < max(when(ref.id) for ref in one.messages)
        ]
        if not around:
            return ""
        spot = (message.channel.id, message.id)
        if spot not in self._read:
            self._read[spot] = (await words(around)).strip()
        found = self._read[spot]
        fits = [one.turn for one in around if found and found in {part.strip() for part in parts(one.text)}]
        return fits[0] if len(fits) == 1 else ""
