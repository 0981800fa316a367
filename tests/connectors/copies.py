# SPDX-License-Identifier: Apache-2.0
"""B10: copies of an answer that is sent again: known by what is kept, or by what a platform says of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from goodbot.api.actions import THUMBS
from goodbot.api.connector import Connector, SentAnswer
from goodbot.api.events import ChannelKind, MessageEvent, MessageRef, Reply
from goodbot.testing.host import RecordingHost

TURN = "5f1e0c7a9b3d2468"
SHORT = "It begins and ends."
_WORDS = ("begins", "goes on", "ends")


def long(limit: int) -> str:
    """The same in more words than a message takes."""
    return f"It begins {'and goes on ' * (limit // 10)}and ends."


async def leaves_no_unknown_words(
    connector: Connector,
    asked: MessageEvent,
    words: str,
    *,
    calls: tuple[type[Any], Sequence[str]],
    sees: Callable[[], Sequence[tuple[str, str]]],
    monkeypatch: pytest.MonkeyPatch,
    replaces: bool = False,
) -> None:
    """Killed after any call, no words of a stored answer stand in a message that is not recorded.

    `calls` are the methods that ask the platform; `sees` tells our messages there, ids and texts;
    `replaces`: the answer takes the place of another one.
    """
    kept: set[str] = set()
    old: tuple[MessageRef, ...] = ()
    if replaces:
        old = await connector.stream(asked.channel, asked.message_id).finish(Reply(text="No.", turn="old"))
        kept.update(ref.id for ref in old)
    count, last, reached = 0, 0, asyncio.Event()
    whose, names = calls

    async def keep(sent: Sequence[MessageRef]) -> None:
        kept.update(ref.id for ref in sent)

    def deadly(real: Any) -> Any:
        async def call(*args: Any, **options: Any) -> Any:
            nonlocal count
            done = await real(*args, **options)
            count += 1
            if count == last:
                reached.set()
                await asyncio.Event().wait()
            return done

        return call

    for name in names:
        monkeypatch.setattr(whose, name, deadly(getattr(whose, name)))

    async def sent() -> bool:
        """Whether all of it was sent before it was killed."""
        nonlocal count
        count = 0
        reached.clear()
        stream = (
            connector.replace(old, asked.channel)
            if old
            else connector.stream(asked.channel, asked.message_id)
        )
        stream.keep = keep
        answer = Reply(text=words, turn=TURN, buttons=THUMBS)
        ends: list[asyncio.Task[Any]] = [
            asyncio.create_task(work) for work in (stream.finish(answer), reached.wait())
        ]
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        whole = ends[0].done() and bool(ends[0].result())
        for end in ends:
            end.cancel()
        await asyncio.gather(*ends, return_exceptions=True)
        return whole

    def standing() -> set[str]:
        return {id_ for id_, text in sees() if any(word in text for word in _WORDS)}

    whole = False
    while not whole:
        last += 1
        whole = await sent()
        assert standing() <= kept
    assert last > 1
    assert replaces or len(standing()) >= last - 1, "some were killed when all of the words stood there"


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
