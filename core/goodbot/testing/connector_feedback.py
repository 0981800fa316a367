# SPDX-License-Identifier: Apache-2.0
"""What follows a bad rating: what is offered to one person alone, presses, reasons, better answers."""

from __future__ import annotations

import asyncio

from goodbot.api.actions import retry_row
from goodbot.api.connector import Capability, Connector, ConnectorSpec
from goodbot.api.events import (
    Button,
    ChannelKind,
    MessageEvent,
    MessageRef,
    Outcome,
    PressEvent,
    RatingEvent,
    RatingKind,
    Receipt,
    Reply,
)
from goodbot.testing.connector_base import BAD, GOOD, QUIET, ConnectorFixtures, eventually
from goodbot.testing.host import RecordingHost
from goodbot.testing.platform import PlatformDriver

TURN = "5f1e0c7a9b3d2468"
OFFER = retry_row()
ACTIONS = tuple(button.action for button in OFFER)
TEXT = "Bad. 12 of 40 ratings (28 to go)."


class FeedbackContract(ConnectorFixtures):
    """Offers are for one person; a press that does not rate is told as it is."""

    async def bad(
        self,
        connector: Connector,
        host: RecordingHost,
        platform: PlatformDriver,
        offer: tuple[Button, ...] = OFFER,
    ) -> MessageRef:
        """Let Ada call an answer in private bad with its button, and be offered more for that.

        Args:
            connector: A started connector.
            host: What it talks to.
            platform: The far side.
            offer: The buttons that she is offered.

        Returns:
            The answer.
        """
        asked = await self.asked(host, platform)
        reply = Reply(text="An answer.", turn=TURN, buttons=(GOOD, BAD))
        message = (await connector.send(asked.channel, reply))[-1]
        await platform.press(message, "bad")
        [event] = await host.received(RatingEvent)
        receipt = Receipt(
            event_id=event.event_id, outcome=Outcome.ACCEPTED, text=TEXT, turn=TURN, offer=offer
        )
        await connector.acknowledge(event, receipt)
        return message

    async def test_an_offer_is_shown_to_one_person(
        self, spec: ConnectorSpec, connector: Connector, host: RecordingHost, platform: PlatformDriver
    ) -> None:
        self.need(spec, Capability.BUTTONS)
        await self.bad(connector, host, platform)
        assert tuple(await eventually(lambda: platform.offers("ada"))) == ACTIONS
        assert TEXT in await platform.notices("ada")
        assert list(await platform.offers("bob")) == []
        assert [post.text for post in await platform.posts()] == ["An answer."], "no second message"

    async def test_a_press_that_is_no_rating_is_told_as_it_is(
        self, spec: ConnectorSpec, connector: Connector, host: RecordingHost, platform: PlatformDriver
    ) -> None:
        self.need(spec, Capability.BUTTONS)
        message = await self.bad(connector, host, platform)
        await eventually(lambda: platform.offers("ada"))
        await platform.press(message, "again:long")
        [press] = await host.received(PressEvent)
        assert (press.action, press.turn, press.message_id) == ("again:long", TURN, message.id)
        assert press.channel.id == message.channel.id
        assert press.user == host.events[0].user
        assert press.order > host.events[-2].order
        rated = [event for event in host.events if isinstance(event, RatingEvent)]
        assert [event.value for event in rated] == [-1.0]
        for text in ("", "That answer was replaced already."):  # at once, and what it came to
            receipt = Receipt(event_id=press.event_id, outcome=Outcome.ACCEPTED, text=text)
            await connector.acknowledge(press, receipt)
        assert text in await eventually(lambda: platform.notices("ada"))
        assert host.failures == []

    async def test_a_button_of_a_command_comes_back_whole(
        self, spec: ConnectorSpec, connector: Connector, host: RecordingHost, platform: PlatformDriver
    ) -> None:
        """`run:rollback since 2026-11-21T18:30 yes`: longer than some platforms let data be."""
        self.need(spec, Capability.BUTTONS)
        action = "run:rollback since 2026-11-21T18:30:00+00:00 yes because it became rude"
        offer = (Button(action=action, label="Yes, go back"),)
        message = await self.bad(connector, host, platform, offer)
        assert tuple(await eventually(lambda: platform.offers("ada"))) == (action,)
        await platform.press(message, action)
        [press] = await host.received(PressEvent)
        assert press.action == action

    async def test_what_is_asked_unasked_has_buttons_that_come_back(
        self, spec: ConnectorSpec, connector: Connector, host: RecordingHost, platform: PlatformDriver
    ) -> None:
        """As when owners are asked which of two versions answers better: no answer of ours to rate."""
        self.need(spec, Capability.BUTTONS)
        asked = await self.asked(host, platform)
        choices = tuple(Button(action=f"run:compare 12 {word}", label=word) for word in ("a", "b", "same"))
        question = Reply(text="A:\nfour\n\nB:\nfive", buttons=choices, silent=True)
        refs = await connector.send(asked.channel, question)
        await platform.press(refs[-1], choices[1].action)
        [press] = await host.received(PressEvent)
        assert press.action == choices[1].action
        assert press.user == asked.user
        assert press.channel.kind is asked.channel.kind
        receipt = Receipt(event_id=press.event_id, outcome=Outcome.ACCEPTED, text="Noted.", offer=choices[:1])
        await connector.acknowledge(press, receipt)
        assert "Noted." in await eventually(lambda: platform.notices("ada"))
        assert host.failures == []

    async def test_in_a_shared_room_an_offer_is_seen_by_nobody_else(
        self, spec: ConnectorSpec, connector: Connector, host: RecordingHost, platform: PlatformDriver
    ) -> None:
        self.need(spec, Capability.REACTIONS)
        self.need(spec, Capability.BUTTONS)
        self.need_room(platform, ChannelKind.SHARED)
        room = ChannelKind.SHARED
        await platform.say("hello", room=room, mention=True)
        [asked] = await host.received(MessageEvent)
        [message] = await connector.send(asked.channel, Reply(text="An answer.", turn=TURN))
        await platform.react(message, new=platform.bad)
        [event] = await host.received(RatingEvent)
        receipt = Receipt(
            event_id=event.event_id, outcome=Outcome.ACCEPTED, text=TEXT, turn=TURN, offer=OFFER
        )
        await connector.acknowledge(event, receipt)
        await asyncio.sleep(QUIET)
        assert list(await platform.offers("bob")) == []
        assert list(await platform.notices("bob")) == []
        [post] = await platform.posts(room)
        assert not set(post.buttons) & set(ACTIONS)
        if Capability.EPHEMERAL in spec.capabilities:
            assert tuple(await platform.offers("ada")) == ACTIONS

    async def test_a_reason_and_a_better_answer_come_as_what_they_are(
        self, spec: ConnectorSpec, connector: Connector, host: RecordingHost, platform: PlatformDriver
    ) -> None:
        self.need(spec, Capability.COMMENTS)
        self.need(spec, Capability.BUTTONS)
        message = await self.bad(connector, host, platform)
        await platform.comment(message, "It leaves out\nthe units. 🙂")
        [_, why] = await host.received(RatingEvent, 2)
        await platform.comment(message, "It is 4 km.", better=True)
        [_, _, better] = await host.received(RatingEvent, 3)
        assert (why.kind, why.text) == (RatingKind.COMMENT, "It leaves out\nthe units. 🙂")
        assert (better.kind, better.text) == (RatingKind.BETTER, "It is 4 km.")
        for event in (why, better):
            assert event.value is None
            assert event.turn == TURN or event.message_id == message.id, "the answer that is meant"
            assert event.turn in ("", TURN)
            assert event.user == host.events[0].user
        assert why.order < better.order
        asked = [event.text for event in host.events if isinstance(event, MessageEvent)]
        assert asked == ["hello"], "what is typed there is no question"
