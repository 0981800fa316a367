# SPDX-License-Identifier: Apache-2.0
"""B10: which message is a copy of an answer that was sent again, by what a platform says of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from goodbot.api.actions import THUMBS
from goodbot.api.connector import Connector, SentAnswer
from goodbot.api.events import ChannelKind, MessageEvent, MessageRef, Reply
from goodbot.testing.host import RecordingHost

TURN = "5f1e0c7a9b3d2468"


async def knows_a_first_copy(
    connector: Connector,
    host: RecordingHost,
    peer: Any,
    words: str,
    *,
    vanish: Callable[[str], object],
    reads: Callable[[], Sequence[object]],
    stream: Callable[[MessageEvent], Any],
    room: ChannelKind = ChannelKind.PRIVATE,
    asked_for: int = 4,
) -> MessageRef:
    """By its words, and nothing else is one; returns it.

    `vanish` deletes a message; `reads` are the requests for one, `asked_for` in the end.
    """
    shared = room is ChannelKind.SHARED
    await peer.say("What is 2 + 2?", room=room, mention=shared)
    [asked] = await host.received(MessageEvent)

    async def said(text: str) -> MessageRef:
        [ref] = await stream(asked).finish(Reply(text=text, turn=TURN, buttons=THUMBS))
        return ref

    first = await said(words)
    [status] = await connector.send(asked.channel, Reply(text="It runs.", turn=TURN, buttons=THUMBS))
    await peer.say(words, room=room, mention=shared)
    hers = (await host.received(MessageEvent, 2))[-1]
    gone, last, after = await said(words), await said(words), await said(words)
    vanish(gone.id)
    answer = SentAnswer(turn=TURN, text=words, question=asked.message_id, messages=(last,))
    assert await connector.copied(first, [answer]) == TURN
    for later in ("", first.id):  # a copy stands behind the question
        assert await connector.copied(first, [replace(answer, question=later)]) == ""
    none = (status, replace(first, id=hers.message_id), gone, after)
    for ref in none:
        assert await connector.copied(ref, [answer]) == ""
    other = replace(answer, turn="another")
    assert await connector.copied(first, [answer, other]) == "", "nothing says of which of the two"
    assert await connector.copied(first, [replace(answer, text="Else."), other]) == "another"
    for ref in none:
        assert await connector.copied(ref, [answer]) == ""
    assert len(reads()) == asked_for, "each is asked for once, and what came later never"
    return first
