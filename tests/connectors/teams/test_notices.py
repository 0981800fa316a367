# SPDX-License-Identifier: Apache-2.0
"""What a person is told of their rating, and what nobody else is."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from goodbot.api.actions import THUMBS, retry_row, run
from goodbot.api.connector import Connector
from goodbot.api.events import (
    CommandEvent,
    Event,
    MessageEvent,
    Outcome,
    PressEvent,
    RatingEvent,
    Receipt,
    Reply,
)
from goodbot.testing.connector_base import build
from goodbot.testing.host import RecordingHost
from goodbot_connectors.teams import SPEC
from goodbot_fakes.teams import FakeTeams, Message, cards

from tests.connectors.remembered import holds
from tests.connectors.teams.peer import TeamsPeer, actions, shown

TURN = "5f1e0c7a9b3d2468"
ANSWER = Reply(text="An answer.", turn=TURN, buttons=THUMBS)


def told(event: Event, text: str, *, offer: bool = False, outcome: Outcome = Outcome.ACCEPTED) -> Receipt:
    """What the core says to an event."""
    given = retry_row() if offer else ()
    return Receipt(event_id=event.event_id, outcome=outcome, text=text, turn=TURN, offer=given)


class Room:
    """Ada has asked in private and in the lab, and has an answer to each."""

    def __init__(self, teams: FakeTeams, connector: Connector, host: RecordingHost, lab: Any) -> None:
        self.teams, self.connector, self.host, self.lab = teams, connector, host, lab
        self.ada = teams.person("Ada")

    async def answered(self, *, shared: bool = False, user: str = "Ada") -> Message:
        person = self.teams.person(user)
        before = len(self.host.events)
        person.says("hello", self.lab if shared else None, mention=shared)
        await self.host.wait(lambda: len(self.host.events) > before)
        event = self.host.events[-1]
        [ref] = await self.connector.send(event.channel, ANSWER)
        return self.teams.tenant.message(event.channel.id, ref.id)

    async def next(self, kind: type[Any]) -> Any:
        """The event of what was done last."""
        await self.teams.settled()
        event = self.host.events[-1]
        assert isinstance(event, kind)
        return event


@pytest.fixture
async def room(teams: FakeTeams, peer: TeamsPeer, connector: Connector, host: RecordingHost) -> Room:
    return Room(teams, connector, host, peer.lab)


async def test_a_rating_is_confirmed_by_a_card(room: Room) -> None:
    answer = await room.answered()
    room.ada.reacts(answer, "like")
    event = await room.next(RatingEvent)
    await room.connector.acknowledge(event, told(event, "Good. 12 of 40."))
    message, card = room.ada.sees()
    assert (message.text, message.edited, message.feedback) == ("An answer.", False, "default")
    assert (card.text, shown(card)) == ("", "Good. 12 of 40.")


async def test_the_next_rating_changes_the_card(room: Room) -> None:
    answer = await room.answered()
    for reaction, text in (("angry", "Bad. 12 of 40."), ("like", "Good. 12 of 40.")):
        room.ada.reacts(answer, reaction)
        event = await room.next(RatingEvent)
        await room.connector.acknowledge(event, told(event, text, offer=reaction == "angry"))
    _, card = room.ada.sees()
    assert shown(card) == "Good. 12 of 40."
    assert actions(card) == []


async def test_once_there_is_something_newer_the_next_card_comes_below(room: Room) -> None:
    answer = await room.answered()
    for _ in range(2):
        room.ada.reacts(answer, "like")
        event = await room.next(RatingEvent)
        await room.connector.acknowledge(event, told(event, "Good. 12 of 40."))
        answer = await room.answered()
    assert [bool(message.cards) for message in room.ada.sees()] == [False, True, False, True, False]


async def test_what_was_pressed_cannot_be_pressed_again(room: Room) -> None:
    answer = await room.answered()
    room.ada.rates(answer, good=False)
    event = await room.next(RatingEvent)
    await room.connector.acknowledge(event, told(event, "Bad. 12 of 40.", offer=True))
    _, card = room.ada.sees()
    room.ada.presses(card, cards.actions(card.cards[0])[0])
    press = await room.next(PressEvent)
    assert (press.action, press.turn, press.message_id) == ("again:long", TURN, answer.id)
    await room.connector.acknowledge(press, told(press, ""))
    _, card = room.ada.sees()
    assert shown(card) == "Bad. 12 of 40."
    assert actions(card) == []


async def test_a_press_after_a_restart_still_rates_and_still_asks_again(
    room: Room, peer: TeamsPeer, host: RecordingHost
) -> None:
    answer = await room.answered()
    room.ada.rates(answer, good=False)
    event = await room.next(RatingEvent)
    await room.connector.acknowledge(event, told(event, "Bad. 12 of 40.", offer=True))
    await room.connector.stop()
    again = build(SPEC, host, peer)
    await again.start()
    _, card = room.ada.sees()
    room.ada.presses(card, cards.actions(card.cards[0])[0])
    press = await room.next(PressEvent)
    assert (press.action, press.turn, press.message_id) == ("again:long", TURN, answer.id)
    await again.acknowledge(press, told(press, "That answer was replaced already."))
    room.ada.rates(answer, good=True)
    event = await room.next(RatingEvent)
    assert event.turn == TURN, "known from before the restart"
    await again.stop()


async def test_a_confirmation_is_answered_on_its_own_card(room: Room) -> None:
    await room.answered()
    room.ada.says("/rl reset")
    event = await room.next(CommandEvent)
    asked = replace(told(event, "Really?"), offer=(run("reset yes", "Yes, forget all"),))
    await room.connector.acknowledge(event, asked)
    card = room.ada.sees()[-1]
    room.ada.presses(card, cards.actions(card.cards[0])[0])
    press = await room.next(PressEvent)
    await room.connector.acknowledge(press, told(press, "Done."))
    assert shown(room.ada.sees()[-1]) == "Done."
    assert actions(room.ada.sees()[-1]) == []


async def test_a_rating_in_a_channel_is_confirmed_to_its_rater_alone(room: Room) -> None:
    await room.answered()
    answer = await room.answered(shared=True)
    for reaction, text in (("like", "Good. 12 of 40."), ("angry", "Bad. 12 of 40.")):
        room.ada.reacts(answer, reaction)
        event = await room.next(RatingEvent)
        await room.connector.acknowledge(event, told(event, text, offer=True))
    assert [(m.text, shown(m)) for m in room.ada.sees(room.lab)] == [("An answer.", "")]
    assert [shown(m) for m in room.ada.sees()] == ["", "Bad. 12 of 40."], "one card that changes"
    assert room.teams.person("Bob").sees() == []


async def test_whoever_has_no_chat_with_the_bot_hears_nothing(room: Room) -> None:
    answer = await room.answered(shared=True)
    room.ada.reacts(answer, "like")
    event = await room.next(RatingEvent)
    await room.connector.acknowledge(event, told(event, "Good. 12 of 40."))
    assert room.ada.sees() == []
    assert len(room.ada.sees(room.lab)) == 1


async def test_a_rating_by_words_in_a_channel_adds_no_message_there(room: Room) -> None:
    await room.answered()
    await room.answered(shared=True)
    room.ada.says("/rl bad", room.lab, mention=True)
    event = await room.next(CommandEvent)
    await room.connector.acknowledge(event, told(event, "Bad. 12 of 40."))
    assert len(room.ada.sees(room.lab)) == 1
    assert shown(room.ada.sees()[-1]) == "Bad. 12 of 40."


async def test_another_command_in_a_channel_is_answered_there_without_an_offer(room: Room) -> None:
    await room.answered(shared=True)
    room.ada.says("/rl enable", room.lab, mention=True)
    event = await room.next(CommandEvent)
    await room.connector.acknowledge(event, told(event, "I answer here now.", offer=True))
    card = room.ada.sees(room.lab)[-1]
    assert shown(card) == "I answer here now."
    assert actions(card) == []
    assert card.thread == event.channel.thread


async def test_with_targeted_messages_only_the_rater_sees_it_in_the_channel(
    teams: FakeTeams, peer: TeamsPeer, host: RecordingHost
) -> None:
    connector = build(SPEC, host, peer_with(peer, targeted=True))
    await connector.start()
    room = Room(teams, connector, host, peer.lab)
    answer = await room.answered(shared=True)
    room.ada.reacts(answer, "angry")
    event = await room.next(RatingEvent)
    await connector.acknowledge(event, told(event, "Bad. 12 of 40.", offer=True))
    assert [shown(m) for m in room.ada.sees(room.lab)] == ["", "Bad. 12 of 40."]
    assert len(teams.person("Bob").sees(room.lab)) == 1
    card = room.ada.sees(room.lab)[-1]
    room.ada.presses(card, cards.actions(card.cards[0])[2])
    press = await room.next(PressEvent)
    assert (press.action, press.turn, press.message_id) == ("again:wrong", TURN, answer.id)
    await connector.stop()


async def test_with_the_own_form_a_better_answer_comes_with_the_thumb(
    teams: FakeTeams, peer: TeamsPeer, host: RecordingHost
) -> None:
    connector = build(SPEC, host, peer_with(peer, feedback="custom"))
    await connector.start()
    room = Room(teams, connector, host, peer.lab)
    answer = await room.answered()
    room.ada.rates(answer, good=False)
    rated = await room.next(RatingEvent)
    assert (rated.value, rated.source, rated.turn) == (-1.0, "button", TURN)
    [dialog] = room.ada.dialogs
    [send] = cards.actions(dialog.card)
    room.ada.submits(dialog, send, {"reason": "Too vague.", "better": "It is 4 km."})
    better = await room.next(RatingEvent)
    assert (better.kind.value, better.text, better.turn) == ("better", "It is 4 km.", TURN)
    assert [e.value for e in host.events if isinstance(e, RatingEvent)] == [-1.0, -1.0, None, None]
    await connector.stop()


async def test_news_open_a_chat_with_somebody_who_never_wrote_there(room: Room) -> None:
    await room.answered(shared=True)
    bob = room.teams.person("Bob")
    room.teams.tenant.personal(bob.account)
    channel = await room.connector.private(bob.id)
    assert channel is not None
    await room.connector.send(channel, Reply(text="News."))
    assert [m.text for m in bob.sees()] == ["News."]


async def test_where_the_app_is_not_installed_there_is_no_private_chat(room: Room) -> None:
    await room.answered(shared=True)
    assert await room.connector.private("29:1nobody-here") is None


async def test_answers_find_their_way_after_a_restart(
    room: Room, peer: TeamsPeer, host: RecordingHost
) -> None:
    await room.answered(shared=True)
    [asked] = await host.received(MessageEvent)
    await room.connector.stop()
    again = build(SPEC, host, peer)
    await again.start()
    [ref] = await again.send(asked.channel, Reply(text="Late, but here."))
    await again.edit(ref, Reply(text="Late."))
    assert room.ada.sees(room.lab)[-1].text == "Late."
    assert room.ada.sees(room.lab)[-1].thread == asked.channel.thread
    await again.stop()


async def test_forgetting_somebody_drops_their_chat(room: Room, host: RecordingHost) -> None:
    await room.answered()
    user = room.host.events[-1].user
    chat = room.host.events[-1].channel.id
    assert chat in (await host.get(f"{room.connector.account} chat:{user.id}") or "")
    for _ in range(2):
        await room.connector.forget(user.id)
    account = room.connector.account
    for name in ("latest", f"conversation:{chat}", f"chat:{user.id}", "answers"):
        kept = await host.get(f"{account} {name}") or ""
        assert user.id not in kept
        assert chat.rpartition(":")[2] not in kept


async def test_s6_no_message_of_who_is_forgotten_is_known(room: Room) -> None:
    room.ada.reacts(await room.answered(), "like")
    event = await room.next(RatingEvent)
    await room.connector.acknowledge(event, told(event, "Good."))
    assert holds(room.connector, event.channel.id)
    await room.connector.forget(event.user.id)
    assert holds(room.connector, event.channel.id) == []


async def test_a_flood_of_ratings_is_confirmed_in_part_and_counted_whole(room: Room) -> None:
    answer = await room.answered()
    receipts = []
    for n in range(30):
        room.ada.reacts(answer, "like")
        event = await room.next(RatingEvent)
        receipts.append((event, told(event, f"Good. {n} of 40.")))
    before = len(room.teams.calls)
    await asyncio.gather(*(room.connector.acknowledge(*one) for one in receipts))
    assert 0 < len(room.teams.calls) - before < 30


def peer_with(peer: TeamsPeer, **settings: Any) -> Any:
    """The same peer with other settings."""
    peer.settings = replace(peer.settings, **settings)
    return peer
