# SPDX-License-Identifier: Apache-2.0
"""An answer that grows: by Teams's protocol in a personal chat, by edits elsewhere. On virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from goodbot.api.actions import THUMBS
from goodbot.api.events import ChannelRef, MessageEvent, Reply
from goodbot.api.reply_stream import CancelledReplyError
from goodbot.api.texts import say
from goodbot.base.errors import RetriableError
from goodbot.testing.clock import VirtualClock
from goodbot.testing.host import RecordingHost
from goodbot_connectors.teams import SPEC
from goodbot_connectors.teams.config import TeamsSettings
from goodbot_fakes.teams import FakeTeams, Pace

from tests.support import free_port, require

require("botbuilder.core")

from goodbot_connectors.teams.connector import TeamsConnector  # noqa: E402  needs the SDK
from goodbot_connectors.teams.wire import Wire  # noqa: E402

TURN = "5f1e0c7a9b3d2468"
WHOLE = Reply(text="It begins and ends.", turn=TURN, buttons=THUMBS)


class Chat:
    """A connector at Microsoft's pace, believed and believing, with Ada in it."""

    def __init__(self, teams: FakeTeams, connector: TeamsConnector, host: RecordingHost) -> None:
        self.teams, self.connector, self.host = teams, connector, host
        self.ada = teams.person("Ada")
        self.lab = teams.channel("Lab", [self.ada])

    async def asked(self, *, shared: bool = False) -> ChannelRef:
        self.ada.says("hello", self.lab if shared else None, mention=shared)
        event = (await self.host.received(MessageEvent))[-1]
        return event.channel

    async def passes(self, seconds: float, step: float = 0.1) -> None:
        """Time passes, and the network keeps up with it."""
        assert isinstance(self.teams.clock, VirtualClock)
        while seconds > 0:
            self.teams.clock.advance(min(step, seconds))
            seconds -= step
            await asyncio.sleep(0.004)

    async def ended(self, work: Any) -> Any:
        """What comes of some work, however much time that takes."""
        task = asyncio.create_task(work)
        while not task.done():
            await self.passes(0.2)
        return task.result()

    def told(self) -> list[tuple[str, str]]:
        """The pieces that Teams took, by kind and text; a message and an edit are kinds, too."""
        return [
            (
                next(
                    (e["streamType"] for e in call.body.get("entities", ()) if "streamType" in e),
                    "edit" if call.operation == "update" else call.body["type"],
                ),
                call.body.get("text", ""),
            )
            for call in self.teams.calls
            if call.status < 300
        ]


@pytest.fixture
async def chat(tmp_path: Path) -> AsyncIterator[Chat]:
    clock = VirtualClock(waits=True)
    async with FakeTeams(clock=clock, pace=Pace()) as teams:
        teams.anonymous = True
        settings = TeamsSettings(insecure_local=True, port=free_port())
        teams.endpoint = f"http://127.0.0.1:{settings.port}/api/messages"
        host = RecordingHost(SPEC, state_dir=tmp_path, clock=clock)
        connector = TeamsConnector(host, settings)
        await connector.start()
        yield Chat(teams, connector, host)
        await connector.stop()
        await host.close()
        assert host.failures == []


async def test_it_thinks_then_writes_then_ends(chat: Chat) -> None:
    channel = await chat.asked()
    stream = chat.connector.stream(channel)
    await chat.passes(0.3)
    assert chat.told() == [("informative", say("thinking"))]
    await stream.append("It beg")
    await stream.append("ins")
    await chat.passes(1.0)
    assert len(chat.told()) == 1, "Teams takes about one piece a second"
    await chat.passes(1.0)
    await stream.append(" and")
    await chat.passes(2.0)
    [ref] = await chat.ended(stream.finish(WHOLE))
    assert chat.told() == [
        ("informative", say("thinking")),
        ("streaming", "It begins"),
        ("streaming", "It begins and"),
        ("final", "It begins and ends."),
    ]
    [shown] = chat.ada.sees()
    assert (shown.id, shown.text, shown.stream) == (ref.id, "It begins and ends.", "final")
    assert (shown.feedback, shown.edited) == ("default", False)
    assert [call.status for call in chat.teams.calls] == [201, 202, 202, 202], "none was refused"


async def test_nothing_is_sent_while_nothing_is_new(chat: Chat) -> None:
    stream = chat.connector.stream(await chat.asked())
    await stream.append("It begins")
    await chat.passes(20, step=0.5)
    assert len(chat.told()) == 1
    await chat.ended(stream.finish(WHOLE))


async def test_a_long_thought_outlives_teamss_two_minutes(chat: Chat) -> None:
    stream = chat.connector.stream(await chat.asked())
    await stream.append("It begins")
    await chat.passes(99, step=0.5)
    await stream.append(" and")
    await chat.passes(40, step=0.5)
    await stream.append(" goes on")
    await chat.passes(10, step=0.5)
    [ref] = await chat.ended(stream.finish(WHOLE))
    assert [kind for kind, _ in chat.told()] == ["streaming", "streaming", "final", "edit", "edit"]
    [shown] = chat.ada.sees()
    assert (shown.id, shown.text, shown.feedback) == (ref.id, "It begins and ends.", "default")
    assert all(call.status < 300 for call in chat.teams.calls)


async def test_where_teams_takes_no_stream_the_message_comes_by_itself(chat: Chat) -> None:
    channel = await chat.asked()
    chat.teams.faults.refuse("send", 403, "ContentStreamNotAllowed")
    stream = chat.connector.stream(channel)
    await chat.passes(0.3)
    await stream.append("It begins")
    await chat.passes(2.5)
    assert [m.text for m in chat.ada.sees()] == ["It begins"]
    [ref] = await chat.ended(stream.finish(WHOLE))
    assert [(m.id, m.text) for m in chat.ada.sees()] == [(ref.id, "It begins and ends.")]


async def test_a_stream_that_breaks_off_still_ends_in_the_whole_answer(chat: Chat) -> None:
    stream = chat.connector.stream(await chat.asked())
    await stream.append("It begins")
    await chat.passes(2)
    chat.teams.faults.refuse("send", 403, "ContentStreamNotAllowed", "Message size too large")
    refs = await chat.ended(stream.finish(WHOLE))
    assert chat.ada.sees()[-1].text == "It begins and ends."
    assert refs[-1].id == chat.ada.sees()[-1].id


async def test_an_end_that_teams_has_heard_though_its_answer_was_lost_is_no_second_message(
    chat: Chat, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = chat.connector.stream(await chat.asked())
    await stream.append("It begins")
    await chat.passes(2)
    send, lost = Wire.send, iter([True])

    async def unheard(self: Wire, *given: Any, **named: Any) -> str:
        sent = await send(self, *given, **named)
        if next(lost, False):
            raise RetriableError("Teams cannot be reached: TimeoutError")
        return sent

    monkeypatch.setattr(Wire, "send", unheard)
    with pytest.raises(RetriableError):
        await chat.ended(stream.finish(WHOLE))
    [ref] = await chat.ended(stream.finish(WHOLE))
    [shown] = chat.ada.sees()
    assert (shown.id, shown.text, shown.feedback) == (ref.id, "It begins and ends.", "default")


async def test_whoever_presses_stop_hears_no_more_of_it(chat: Chat) -> None:
    stream = chat.connector.stream(await chat.asked())
    await stream.append("It begins")
    await chat.passes(2)
    [shown] = chat.ada.sees()
    chat.teams.streams.stop(shown)
    await stream.append(" and")
    await chat.passes(3)
    with pytest.raises(CancelledReplyError):
        await stream.append(" ends.")
    await stream.cancel("Stopped.")
    assert [m.text for m in chat.ada.sees()] == ["It begins"]


async def test_a_stop_at_the_last_moment_leaves_what_stands_there(chat: Chat) -> None:
    stream = chat.connector.stream(await chat.asked())
    await stream.append("It begins")
    await chat.passes(2)
    [shown] = chat.ada.sees()
    chat.teams.streams.stop(shown)
    [ref] = await chat.ended(stream.finish(WHOLE))
    assert [(m.id, m.text) for m in chat.ada.sees()] == [(ref.id, "It begins")]


@pytest.mark.parametrize("status", [412, 429, 502, 504])
async def test_what_may_be_tried_again_is(chat: Chat, status: int) -> None:
    channel = await chat.asked()
    if status == 429:
        chat.teams.faults.rate_limit("send", seconds=7, times=2)
    else:
        chat.teams.faults.break_down("send", status=status, times=3)
    start = chat.teams.clock.monotonic()
    [ref] = await chat.ended(chat.connector.send(channel, WHOLE))
    waited = chat.teams.clock.monotonic() - start
    assert [m.id for m in chat.ada.sees()] == [ref.id]
    assert waited >= (14 if status == 429 else 1 + 2 + 4), "as long as it asks, or more each time"
    assert waited <= 30


async def test_a_pause_that_is_asked_for_delays_a_piece_and_loses_none(chat: Chat) -> None:
    stream = chat.connector.stream(await chat.asked())
    await stream.append("It begins")
    await chat.passes(0.5)
    chat.teams.faults.rate_limit("send", seconds=5)
    await stream.append(" and")
    await chat.passes(4)
    assert chat.told() == [("streaming", "It begins")]
    await chat.passes(8)
    assert chat.told()[1:] == [("streaming", "It begins and")]
    await chat.ended(stream.finish(WHOLE))
    assert chat.ada.sees()[0].text == "It begins and ends."


async def test_in_a_channel_the_message_grows_by_edits_in_its_thread(chat: Chat) -> None:
    channel = await chat.asked(shared=True)
    stream = chat.connector.stream(channel)
    await chat.passes(9)
    assert chat.told() == [], "nobody sees there that a bot is typing"
    await stream.append("It begins")
    await chat.passes(1)
    await stream.append(" and")
    await chat.passes(3)
    [ref] = await chat.ended(stream.finish(WHOLE))
    assert chat.told() == [
        ("message", "It begins"),
        ("edit", "It begins and"),
        ("edit", "It begins and ends."),
    ]
    [shown] = chat.ada.sees(chat.lab)
    assert (shown.id, shown.thread, shown.feedback) == (ref.id, channel.thread, "")


async def test_a_message_that_takes_no_edits_is_followed_by_one_other_and_no_more(chat: Chat) -> None:
    stream = chat.connector.stream(await chat.asked(shared=True))
    await stream.append("It begins")
    await chat.passes(1)
    chat.teams.faults.refuse("update", 403, "Forbidden", times=100)
    for word in (" and", " goes", " on", " and", " on"):
        await stream.append(word)
        await chat.passes(2.5)
    [ref] = await chat.ended(stream.finish(WHOLE))
    first, whole = chat.ada.sees(chat.lab)
    assert (first.text, whole.id, whole.text) == ("It begins", ref.id, "It begins and ends.")


async def test_in_a_group_it_shows_that_it_is_typing(chat: Chat) -> None:
    group = chat.teams.group("Us", [chat.ada])
    chat.ada.says("hello", group, mention=True)
    [asked] = await chat.host.received(MessageEvent)
    stream = chat.connector.stream(asked.channel)
    await chat.passes(10)
    assert [kind for kind, _ in chat.told()] == ["typing", "typing"]
    await chat.ended(stream.finish(WHOLE))
    await chat.passes(10)
    assert len(chat.told()) == 3, "and then no more"


async def test_an_answer_whose_message_was_deleted_comes_as_another(chat: Chat) -> None:
    channel = await chat.asked()
    [ref] = await chat.ended(chat.connector.send(channel, WHOLE))
    del chat.teams.tenant.messages[channel.id, ref.id]
    [again] = await chat.ended(chat.connector.replace([ref], channel).finish(Reply(text="Again.")))
    assert [(m.id, m.text) for m in chat.ada.sees()] == [(again.id, "Again.")]
