# SPDX-License-Identifier: Apache-2.0
"""What Teams has beside the contract: its own form, targeted messages, group chats, what is no message."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import Any

import pytest
from goodbot.api.actions import STAR_ROW, retry_row
from goodbot.api.connector import Connector
from goodbot.api.events import (
    ChannelKind,
    CommandEvent,
    MessageEvent,
    Outcome,
    RatingEvent,
    RatingKind,
    Receipt,
    Reply,
)
from goodbot.testing.connector_base import BAD, GOOD, QUIET, build, eventually
from goodbot.testing.host import RecordingHost
from goodbot_connectors.teams import SPEC
from goodbot_fakes.teams import FakeTeams, activities, cards

from tests.connectors.teams.peer import TeamsPeer, actions, shown

TURN = "5f1e0c7a9b3d2468"
ANSWER = Reply(text="An answer.", turn=TURN, buttons=(GOOD, BAD))
TEXT = "Bad. 12 of 40 ratings (28 to go)."
Json = dict[str, Any]


async def test_teams_s_own_words_are_a_reason_and_our_form_has_room_for_a_better_answer(
    teams: FakeTeams, peer: TeamsPeer, host: RecordingHost
) -> None:
    peer.settings = dataclasses.replace(peer.settings, feedback="custom")
    connector = build(SPEC, host, peer)
    await connector.start()
    await peer.say("hello")
    [asked] = await host.received(MessageEvent)
    [ref] = await connector.send(asked.channel, ANSWER)
    ada, answer = peer.people["ada"], peer.find(ref)
    assert answer.feedback == "custom"
    ada.rates(answer, good=False)
    [rate] = await host.received(RatingEvent)
    assert (rate.value, rate.turn) == (-1.0, TURN), "it counts at once, whatever becomes of the form"
    await teams.until(lambda: bool(ada.dialogs))
    [dialog] = ada.dialogs
    [send] = cards.actions(dialog.card)
    ada.submits(dialog, send, {"reason": "too long", "better": "Short."})
    events = await host.received(RatingEvent, 3)
    said = {event.kind: event.text for event in events if event.text}
    assert said == {RatingKind.COMMENT: "too long", RatingKind.BETTER: "Short."}
    assert {event.message_id for event in events} == {ref.id}
    assert {event.value for event in events} == {-1.0, None}
    await teams.settled()
    assert ada.told == []
    await connector.stop()


async def test_stars_are_a_card_of_their_own_and_rate(
    teams: FakeTeams, peer: TeamsPeer, host: RecordingHost, connector: Connector
) -> None:
    await peer.say("hello")
    [asked] = await host.received(MessageEvent)
    refs = await connector.send(asked.channel, Reply(text="An answer.", turn=TURN, buttons=STAR_ROW))
    ada = peer.people["ada"]
    text, card = ada.sees()
    assert (text.text, actions(text)) == ("An answer.", [])
    assert actions(card) == [f"star:{n}" for n in range(1, 6)]
    assert text.id in {ref.id for ref in refs}
    await peer.press(refs[0], "star:4")
    [rate] = await host.received(RatingEvent)
    assert (rate.value, rate.source, rate.turn) == (0.5, "stars", TURN)


async def test_where_it_may_it_tells_one_person_in_the_channel(
    teams: FakeTeams, peer: TeamsPeer, host: RecordingHost
) -> None:
    peer.settings = dataclasses.replace(peer.settings, targeted=True)
    connector = build(SPEC, host, peer)
    await connector.start()
    await peer.say("hello", room=ChannelKind.SHARED, mention=True)
    [asked] = await host.received(MessageEvent)
    [ref] = await connector.send(asked.channel, Reply(text="An answer.", turn=TURN))
    await peer.react(ref, new="👎")
    [rated] = await host.received(RatingEvent)
    receipt = Receipt(
        event_id=rated.event_id, outcome=Outcome.ACCEPTED, text=TEXT, turn=TURN, offer=retry_row()
    )
    await connector.acknowledge(rated, receipt)
    ada, bob = peer.people["ada"], peer.people["bob"]
    [told] = [m for m in ada.sees(peer.lab) if m.to]
    assert shown(told) == TEXT
    assert "again:short" in actions(told)
    assert [m.text for m in bob.sees(peer.lab)] == ["An answer."]
    await connector.stop()


async def test_a_group_chat_is_a_shared_channel_without_threads(
    teams: FakeTeams, peer: TeamsPeer, host: RecordingHost, connector: Connector
) -> None:
    ada = peer.people["ada"]
    group = teams.group("Friends", [ada, peer.people["bob"]])
    ada.says("not for the bot", group)
    ada.says("what now?", group, mention=True)
    [asked] = await host.received(MessageEvent)
    assert (asked.text, asked.channel.id, asked.channel.thread) == ("what now?", group.id, "")
    assert asked.channel.kind is ChannelKind.SHARED
    stream = connector.stream(asked.channel, asked.message_id)
    await stream.append("It begins")
    await eventually(lambda: _any(ada.sees(group)))
    [ref] = await stream.finish(ANSWER)
    [answer] = ada.sees(group)
    assert (answer.id, answer.text, answer.feedback, answer.cards) == (ref.id, "An answer.", "", [])
    ada.reacts(answer, "like")
    [rate] = await host.received(RatingEvent)
    assert (rate.message_id, rate.channel.id) == (ref.id, group.id)


async def _any(found: list[Any]) -> bool:
    return bool(found)


async def test_what_is_no_message_is_taken_and_no_event(
    teams: FakeTeams, peer: TeamsPeer, host: RecordingHost, connector: Connector
) -> None:
    """Installing, joining, editing, deleting, kinds that are yet to come: answered, or it comes again."""
    ada = peer.people["ada"]
    teams.installs(ada)
    said = ada.says("first")
    ada.edits(said, "edited")
    update = activities.message(teams.tenant, teams.service_url, said, type_="messageDelete")
    seen = (await teams.post(update, teams.identity.header(teams.service_url)))[0]
    other = activities.invoke(
        teams.tenant, teams.service_url, said, ada.account, "composeExtension/query", {}
    )
    unknown = (await teams.post(other, teams.identity.header(teams.service_url)))[0]
    await teams.settled()
    assert (seen, unknown) == (200, 200)
    assert [event.text for event in await host.received(MessageEvent)] == ["first"]
    await asyncio.sleep(QUIET)
    assert len(host.events) == 1
    assert host.failures == []
    assert {delivery.state for delivery in teams.outbox.log} == {"acknowledged"}


async def test_news_reach_who_has_installed_it_and_never_wrote(
    teams: FakeTeams, peer: TeamsPeer, host: RecordingHost, connector: Connector
) -> None:
    ada, bob = peer.people["ada"], peer.people["bob"]
    await peer.say("hello", room=ChannelKind.SHARED, mention=True)
    await host.received(MessageEvent)
    opened = bob.chat
    found = await connector.private(bob.id)
    assert found is not None
    assert (found.id, found.kind) == (opened.id, ChannelKind.PRIVATE)
    await connector.send(found, Reply(text="News."))
    assert [m.text for m in bob.sees()] == ["News."]
    assert ada.sees() == []


@pytest.mark.parametrize("typed", ["/rl good", "/RL good", "rl good", "rl\tgood", "/rl\u00a0good"])
async def test_a_command_by_mention_names_the_message_that_it_quotes(
    teams: FakeTeams, peer: TeamsPeer, host: RecordingHost, connector: Connector, typed: str
) -> None:
    await peer.say("hello", room=ChannelKind.SHARED, mention=True)
    [asked] = await host.received(MessageEvent)
    [ref] = await connector.send(asked.channel, Reply(text="An answer.", turn=TURN))
    await peer.say(typed, room=ChannelKind.SHARED, mention=True, reply_to=ref.id)
    [command] = await host.received(CommandEvent)
    assert (command.name, command.args, command.reply_to) == ("good", "", ref.id)
