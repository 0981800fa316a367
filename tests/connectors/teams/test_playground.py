# SPDX-License-Identifier: Apache-2.0
"""The connector in Microsoft's own playground, which needs no cloud: nothing of ours on the far side."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from goodbot.api.connector import Connector
from goodbot.api.events import (
    ChannelKind,
    CommandEvent,
    MessageEvent,
    Outcome,
    PressEvent,
    RatingEvent,
    RatingKind,
    Receipt,
    Reply,
)
from goodbot.testing.connector_base import BAD, GOOD, QUIET, build
from goodbot.testing.host import RecordingHost
from goodbot_connectors.teams import SPEC
from goodbot_connectors.teams.config import TeamsSettings

from tests.connectors.teams.playground import Playground, people, serve
from tests.support import free_port, require

TURN = "5f1e0c7a9b3d2468"
ANSWER = Reply(text="It is 4.", turn=TURN, buttons=(GOOD, BAD))
Json = dict[str, Any]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, int]]:
    """The playground's address, and the port where its bot is to listen. One start for all tests."""
    require("botbuilder.core")
    port = free_port()
    endpoint = f"http://127.0.0.1:{port}/api/messages"
    with serve(free_port(), endpoint, tmp_path_factory.mktemp("playground")) as url:
        yield url, port


@pytest.fixture
async def host(tmp_path: Any) -> AsyncIterator[RecordingHost]:
    host = RecordingHost(SPEC, state_dir=tmp_path)
    yield host
    await host.close()


@pytest.fixture
async def connector(host: RecordingHost, served: tuple[str, int]) -> AsyncIterator[Connector]:
    class Settings:
        settings = TeamsSettings(
            port=served[1], insecure_local=True, stream_interval=0.05, edit_interval=0.05
        )

    platform: Any = Settings()
    connector = build(SPEC, host, platform)
    await connector.start()
    yield connector
    await connector.stop()


@pytest.fixture
async def playground(connector: Connector, served: tuple[str, int]) -> AsyncIterator[Playground]:
    async with people(served[0]) as playground:
        yield playground


async def answered(
    playground: Playground, host: RecordingHost, connector: Connector
) -> tuple[MessageEvent, Json]:
    """Alex has asked in private and got an answer: the question, and the answer as it is shown."""
    await playground.say("How much is 2 + 2?")
    [asked] = await host.received(MessageEvent)
    stream = connector.stream(asked.channel, asked.message_id)
    await stream.append("It ")
    await stream.append("is")
    [ref] = await stream.finish(ANSWER)
    shown = await playground.answer("It is 4.")
    assert shown["messageId"] == ref.id
    return asked, shown


async def test_a_message_is_answered_with_the_label_of_an_ai_and_feedback_controls(
    playground: Playground, host: RecordingHost, connector: Connector
) -> None:
    asked, shown = await answered(playground, host, connector)
    assert (asked.text, asked.addressed) == ("How much is 2 + 2?", True)
    assert asked.channel.kind is ChannelKind.PRIVATE
    assert asked.user.id == playground.me["id"]
    assert shown["text"] == "It is 4."
    assert shown["aiEntity"]["additionalType"] == ["AIGeneratedContent"]
    assert shown["feedbackLoopEnabled"] is True or shown.get("feedbackLoop")


async def test_a_command_is_one_and_its_answer_is_a_card(
    playground: Playground, host: RecordingHost, connector: Connector
) -> None:
    await playground.say("/rl status please")
    [command] = await host.received(CommandEvent)
    assert (command.name, command.args) == ("status", "please")
    text = "12 of 40 ratings, 28 more until the next training."
    told = Receipt(event_id=command.event_id, outcome=Outcome.ACCEPTED, text=text)
    await connector.acknowledge(command, told)
    shown = await playground.answer(text)
    [attachment] = shown["attachments"]
    assert attachment["contentType"] == "application/vnd.microsoft.card.adaptive"


async def test_a_button_of_a_card_is_a_press(
    playground: Playground, host: RecordingHost, connector: Connector
) -> None:
    from goodbot.api.actions import retry_row

    _, shown = await answered(playground, host, connector)
    thumbs = {"reaction": "dislike", "feedback": '{"feedbackText":""}'}
    value = {"actionName": "feedback", "actionValue": thumbs}
    await playground.tell(shown, "invoke", name="message/submitAction", value=value)
    [rated] = await host.received(RatingEvent)
    told = Receipt(
        event_id=rated.event_id, outcome=Outcome.ACCEPTED, text="Bad.", turn=TURN, offer=retry_row()
    )
    await connector.acknowledge(rated, told)
    offered = await playground.answer("again:short")
    buttons = [
        action["data"]
        for part in offered["attachments"][0]["content"]["body"]
        for action in part.get("actions", ())
    ]
    [short] = [data for data in buttons if "again:short" in data.values()]
    await playground.submit(offered, short)
    [press] = await host.received(PressEvent)
    assert (press.action, press.turn, press.message_id) == ("again:short", TURN, shown["messageId"])


async def test_teams_s_own_feedback_is_a_rating_and_its_words_a_reason(
    playground: Playground, host: RecordingHost, connector: Connector
) -> None:
    _, shown = await answered(playground, host, connector)
    said = {"reaction": "like", "feedback": '{"feedbackText":"Short and right."}'}
    value = {"actionName": "feedback", "actionValue": said}
    await playground.tell(shown, "invoke", name="message/submitAction", value=value)
    rate, why = await host.received(RatingEvent, 2)
    assert (rate.kind, rate.value, rate.turn, rate.source) == (RatingKind.RATE, 1.0, TURN, "button")
    assert (why.kind, why.text, why.message_id) == (
        RatingKind.COMMENT,
        "Short and right.",
        shown["messageId"],
    )


async def test_its_own_invoke_names_no_message_and_is_answered_all_the_same(
    playground: Playground, host: RecordingHost, connector: Connector
) -> None:
    """The playground forgets `replyToId` there; Teams does not. A 501 would be an error message."""
    _, shown = await answered(playground, host, connector)
    said = {"reaction": "like", "feedback": '{"feedbackText":""}'}
    value = {"actionName": "feedback", "actionValue": said}
    assert await playground.invoke(shown, "message/submitAction", value) == {}
    await asyncio.sleep(QUIET)
    assert not [event for event in host.events if isinstance(event, RatingEvent)]
    assert host.failures == []


async def test_reactions_added_and_removed(
    playground: Playground, host: RecordingHost, connector: Connector
) -> None:
    _, shown = await answered(playground, host, connector)
    await playground.tell(shown, "messageReaction", reactionsAdded=[{"type": "like"}])
    [rate] = await host.received(RatingEvent)
    assert (rate.kind, rate.value, rate.message_id) == (RatingKind.RATE, 1.0, shown["messageId"])
    await playground.tell(shown, "messageReaction", reactionsRemoved=[{"type": "like"}])
    back = (await host.received(RatingEvent, 2))[-1]
    assert (back.kind, back.source) == (RatingKind.RETRACT, rate.source)


async def test_in_a_group_it_answers_who_mentions_it(
    playground: Playground, host: RecordingHost, connector: Connector
) -> None:
    await playground.say("not for the bot", playground.group)
    await playground.say("what now?", playground.group, mention=True)
    [asked] = await host.received(MessageEvent)
    assert (asked.text, asked.addressed) == ("what now?", True)
    assert asked.channel.kind is ChannelKind.SHARED
    await connector.stream(asked.channel, asked.message_id).finish(ANSWER)
    shown = await playground.answer("It is 4.", playground.group)
    assert not shown.get("attachments")
    assert not shown.get("feedbackLoopEnabled"), "reactions only, where all can see"


async def test_each_thread_of_a_channel_is_a_conversation(
    playground: Playground, host: RecordingHost, connector: Connector
) -> None:
    one = await playground.say("one", playground.channel, mention=True)
    two = await playground.say("two", playground.channel, mention=True)
    await playground.say("one again", one["postConversationId"], mention=True)
    # Each comes by a request of its own, and nothing says that they come in order.
    said = {event.text: event for event in await host.received(MessageEvent, 3)}
    first, other, again = said["one"], said["two"], said["one again"]
    assert first.channel == again.channel
    assert first.channel.id == other.channel.id == playground.channel
    assert first.channel.thread != other.channel.thread
    await connector.stream(other.channel, other.message_id).finish(Reply(text="In two."))
    shown = await playground.answer("In two.", two["postConversationId"])
    assert shown["text"] == "In two."


async def test_an_edit_takes_the_place_of_the_old_words(
    playground: Playground, host: RecordingHost, connector: Connector
) -> None:
    asked, _ = await answered(playground, host, connector)
    [ref] = await connector.send(asked.channel, Reply(text="Draft."))
    await connector.edit(ref, Reply(text="Final."))
    shown = await playground.answer("Final.")
    assert shown["messageId"] == ref.id
    assert not any(message.get("text") == "Draft." for message in playground.shown.values())
