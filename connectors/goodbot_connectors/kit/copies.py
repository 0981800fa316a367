# SPDX-License-Identifier: Apache-2.0
"""Whether a message is a copy of an answer that was sent again: `Connector.copied` by what stands there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Any

from goodbot.api.connector import SentAnswer
from goodbot.api.events import MessageRef


async def copy_of(
    message: MessageRef,
    answers: Sequence[SentAnswer],
    *,
    when: Callable[[str], Any],
    words: Callable[[], Awaitable[str]],
    parts: Callable[[str], Collection[str]],
) -> str:
    """The turn of the one answer that it is a copy of; empty for none, and for several.

    `when`: orders messages by their ids, for a first copy stands between the question and the last one.
    `words`: what stands there now, empty where it is not ours; the platform is asked only where it may be a
    copy. `parts`: the words of the messages that an answer becomes.
    """
    at = when(message.id)
    behind = [
        one
        for one in answers
        if one.question and when(one.question) < at < max(when(ref.id) for ref in one.messages)
    ]
    found = (await words()).strip() if behind else ""
    fits = [one.turn for one in behind if found and found in {part.strip() for part in parts(one.text)}]
    return fits[0] if len(fits) == 1 else ""
