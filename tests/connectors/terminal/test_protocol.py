# SPDX-License-Identifier: Apache-2.0
"""The chat socket against clients that err, hang, leave, or come twice."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from goodbot.api.actions import retry_row
from goodbot.api.events import MessageEvent, Outcome, PressEvent, RatingEvent, RatingKind, Receipt, Reply
from goodbot.base.errors import ServerError
from goodbot.testing.host import RecordingHost
from goodbot_connectors.terminal import SPEC, TerminalSettings
from goodbot_connectors.terminal.connector import TerminalConnector

from tests.support import patience


class Client:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def next(self, key: str) -> dict[str, Any]:
        """The next line with this key."""
        async with asyncio.timeout(patience(10)):
            while True:
                line = json.loads(await self.reader.readline())
                if key in line:
                    return line

    def send(self, line: object) -> None:
        self.writer.write(json.dumps(line).encode() + b"\n")


@pytest.fixture
def host(tmp_path: Path) -> RecordingHost:
    return RecordingHost(SPEC, state_dir=tmp_path)


@pytest.fixture
async def connector(host: RecordingHost) -> AsyncIterator[TerminalConnector]:
    connector = TerminalConnector(host, TerminalSettings())
    await connector.start()
    yield connector
    await connector.stop()
    await host.close()
    assert host.failures == []


@pytest.fixture
async def attach(connector: TerminalConnector, tmp_path: Path) -> AsyncIterator[Any]:
    clients: list[Client] = []

    async def attach() -> Client:
        pair = await asyncio.open_unix_connection(tmp_path / "chat.sock", limit=2**24)
        clients.append(Client(*pair))
        return clients[-1]

    yield attach
    for client in clients:
        client.writer.close()


NONSENSE = [
    b"\n",
    b"nonsense\n",
    b"3\n",
    b"null\n",
    b"[]\n",
    b"{}\n",
    b'{"say": 3}\n',
    b'{"say": "  "}\n',
    b'{"say": null, "id": {}}\n',
    b'{"rate": 2, "turn": "x"}\n',
    b'{"rate": "1", "turn": "x"}\n',
    b'{"rate": 1}\n',
    b'{"rate": 1.5, "turn": "x"}\n',
    b'{"rate": 1, "turn": ["x"]}\n',
    b"[" * 50_000 + b"\n",
    b"\xff\xfe\n",
    b'{"say": "\xff"}\n',
    b'{"stop": 3}\n',
    b"\x00\n",
]


@pytest.mark.parametrize("data", NONSENSE, ids=range(len(NONSENSE)))
async def test_nonsense_is_refused_and_the_chat_goes_on(
    attach: Any, host: RecordingHost, data: bytes
) -> None:
    client = await attach()
    client.writer.write(data)
    assert (await client.next("refused"))["refused"]
    client.send({"say": "hello"})
    await client.next("taken")
    assert len(host.events) == 1


async def test_a_line_without_an_end_ends_that_chat_only(attach: Any, host: RecordingHost) -> None:
    bad, good = await attach(), await attach()
    bad.writer.write(b"x" * 2_000_000)
    assert "at most" in (await bad.next("refused"))["refused"]
    good.send({"say": "hello"})
    await good.next("taken")


@pytest.mark.parametrize("text", ["\ud800 half", "a\x00b", "🙂" * 50_000, "two\nlines"])
async def test_any_text_can_be_said(attach: Any, host: RecordingHost, text: str) -> None:
    client = await attach()
    client.send({"say": text})
    [event] = await host.received(MessageEvent)
    event.text.encode()
    assert event.text == text.replace("\ud800", "\ufffd")


@pytest.mark.parametrize("id_", ["", "x" * 65, "a b", "ü", 3, None, ["x"]])
async def test_an_odd_id_is_replaced(attach: Any, host: RecordingHost, id_: object) -> None:
    client = await attach()
    client.send({"say": "hello", "id": id_})
    taken = await client.next("taken")
    [event] = await host.received(MessageEvent)
    assert taken["taken"] == event.event_id != id_


@pytest.mark.parametrize("at", [0, -1, 10**30, 1.5, "now", True])
async def test_an_odd_time_is_replaced(attach: Any, host: RecordingHost, at: object) -> None:
    client = await attach()
    client.send({"say": "hello", "at": at})
    [event] = await host.received(MessageEvent)
    assert abs(event.order.time_ms - host.clock.now() * 1000) < 10_000


async def test_a_line_sent_twice_is_one_event(attach: Any, host: RecordingHost) -> None:
    client, other = await attach(), await attach()
    at = int(host.clock.now() * 1000) - 500
    for _ in range(2):
        client.send({"say": "once", "id": "same", "at": at})
        assert (await client.next("taken"))["taken"] == "same"
    client.send({"say": "more"})
    assert (await other.next("said"))["said"] == "once"
    assert (await other.next("said"))["said"] == "more"
    assert len(host.events) == 2


async def test_what_cannot_be_stored_is_refused(attach: Any, host: RecordingHost) -> None:
    client = await attach()
    host.refuse()
    client.send({"say": "hello", "id": "x"})
    refused = await client.next("refused")
    assert (refused["id"], "no space left" in refused["refused"]) == ("x", True)


async def test_every_chat_sees_answers_and_who_came(
    attach: Any, connector: TerminalConnector, host: RecordingHost
) -> None:
    first = await attach()
    assert (await first.next("hello"))["chats"] == 1
    second = await attach()
    assert (await first.next("hello"))["chats"] == 2
    first.send({"say": "hello"})
    [event] = await host.received(MessageEvent)
    assert (await second.next("said"))["said"] == "hello"
    await connector.send(event.channel, Reply(text="Hi.", turn="t", reply_to=event.message_id))
    for client in (first, second):
        line = await client.next("answer")
        assert (line["answer"], line["turn"], line["to"]) == ("Hi.", "t", event.message_id)
    second.writer.close()
    assert (await first.next("hello"))["chats"] == 1


async def test_ratings_and_their_undoing(attach: Any, host: RecordingHost) -> None:
    client = await attach()
    client.send({"rate": -1, "turn": "t"})
    client.send({"rate": 0, "turn": "t"})
    bad, back = await host.received(RatingEvent, 2)
    assert (bad.kind, bad.value, bad.turn) == (RatingKind.RATE, -1.0, "t")
    assert (back.kind, back.value, back.turn) == (RatingKind.RETRACT, None, "t")
    assert bad.order < back.order


async def test_stars_are_given_as_a_button_gives_them(
    attach: Any, connector: TerminalConnector, host: RecordingHost
) -> None:
    client = await attach()
    client.send({"press": "star:4", "turn": "t", "id": "r"})
    [event] = await host.received(RatingEvent)
    assert (event.kind, event.value, event.source) == (RatingKind.RATE, 0.5, "stars")
    await connector.acknowledge(event, Receipt(event_id="r", outcome=Outcome.ACCEPTED, text="4.", turn="t"))
    receipt = await client.next("receipt")
    assert (receipt["value"], receipt["source"]) == (0.5, "stars")
    client.send({"press": "star:6", "turn": "t"})
    [press] = await host.received(PressEvent)
    assert press.action == "star:6", "of which the core says what it is"


async def test_a_chat_that_hangs_holds_nobody_up(
    attach: Any, connector: TerminalConnector, host: RecordingHost
) -> None:
    hung, client = await attach(), await attach()
    client.send({"say": "hello"})
    [event] = await host.received(MessageEvent)
    hung.writer.transport.pause_reading()
    async with asyncio.timeout(patience(20)):
        for _ in range(120):
            await connector.send(event.channel, Reply(text="x" * 100_000))
            await client.next("answer")
    assert len(connector._clients) == 1, "it was let go"


async def test_an_answer_can_be_stopped(
    attach: Any, connector: TerminalConnector, host: RecordingHost
) -> None:
    client = await attach()
    client.send({"say": "tell me all"})
    [event] = await host.received(MessageEvent)
    stream = connector.stream(event.channel, event.message_id)
    stream.language = "de"
    await stream.append("Once upon")
    client.send({"stop": event.message_id})
    client.send({})
    await client.next("refused")
    with pytest.raises(ServerError):
        await stream.append(" a time")
    await stream.cancel("my model is not running")
    failed = await client.next("failed")
    assert failed == {"failed": "Abgebrochen.", "to": event.message_id}
    assert connector.stopped == set()


async def test_another_answer_is_the_answer_to_its_press(
    connector: TerminalConnector, host: RecordingHost, attach: Any
) -> None:
    client = await attach()
    client.send({"say": "hello", "id": "q"})
    [asked] = await host.received(MessageEvent)
    [old] = await connector.send(asked.channel, Reply(text="Old.", turn="t"))
    client.send({"press": "again:long", "turn": "t", "message": old.id, "id": "p"})
    [press] = await host.received(PressEvent)
    assert (press.action, press.turn, press.message_id) == ("again:long", "t", old.id)
    await connector.acknowledge(press, Receipt(event_id="p", outcome=Outcome.ACCEPTED))
    stream = connector.replace((old,), asked.channel)
    await stream.append("New")
    assert (await client.next("text"))["to"] == "p"
    await stream.finish(Reply(text="New.", turn="n"))
    answer = await client.next("answer")
    assert (answer["answer"], answer["to"], answer["turn"]) == ("New.", "p", "n")
    failed = Receipt(event_id="p", outcome=Outcome.FAILED, text="That answer was replaced already.")
    await connector.acknowledge(press, failed)
    assert await client.next("receipt") == {
        "receipt": failed.text,
        "id": "p",
        "turn": "",
        "value": None,
        "source": "",
        "offer": [],
    }


async def test_what_is_offered_comes_with_the_receipt(
    connector: TerminalConnector, host: RecordingHost, attach: Any
) -> None:
    client = await attach()
    client.send({"rate": -1, "turn": "t", "id": "r"})
    [event] = await host.received(RatingEvent)
    receipt = Receipt(event_id="r", outcome=Outcome.ACCEPTED, text="Bad.", offer=retry_row())
    await connector.acknowledge(event, receipt)
    assert (await client.next("receipt"))["offer"][0] == "again:long"
