# SPDX-License-Identifier: Apache-2.0
"""Ratings: whatever way the platform tells them, the ledger must add up to what people see."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from goodbot.api.connector import Capability, Connector, ConnectorSpec
from goodbot.api.events import MessageRef, Outcome, RatingEvent, RatingKind, Receipt, Reply
from goodbot.api.labels import Label, LedgerEvent, fold
from goodbot.testing.connector_base import BAD, GOOD, QUIET, ConnectorFixtures, eventually
from goodbot.testing.host import RecordingHost
from goodbot.testing.platform import PlatformDriver

TURN = "5f1e0c7a9b3d2468"


def opinion(events: Sequence[RatingEvent]) -> float | None:
    """What the events of one person add up to; the ledger may have got them in any order."""
    ledger = [
        LedgerEvent(
            event_id=event.event_id,
            order=event.order,
            kind=event.kind,
            source=event.source,
            value=event.value,
            retracts=event.retracts,
        )
        for event in events
    ]
    label: Label | None = fold(reversed(ledger))
    return label.value if label else None


class RatingsContract(ConnectorFixtures):
    """Reactions and buttons."""

    async def answer(self, connector: Connector, host: RecordingHost, platform: PlatformDriver) -> MessageRef:
        """Send an answer that can be rated.

        Args:
            connector: A started connector.
            host: What it talks to.
            platform: The far side.

        Returns:
            The last message of the answer.
        """
        event = await self.asked(host, platform)
        reply = Reply(text="An answer.", turn=TURN, buttons=(GOOD, BAD))
        return (await connector.send(event.channel, reply))[-1]

    async def test_a_reaction_rates_and_its_removal_takes_that_back(
        self, spec: ConnectorSpec, connector: Connector, host: RecordingHost, platform: PlatformDriver
    ) -> None:
        self.need(spec, Capability.REACTIONS)
        message = await self.answer(connector, host, platform)
        await platform.react(message, new=platform.good)
        [rate] = await host.received(RatingEvent)
        assert (rate.kind, rate.value) == (RatingKind.RATE, 1.0)
        assert rate.message_id == message.id
        assert rate.source.startswith("reaction:")
        assert rate.channel.id == message.channel.id
        await platform.react(message, old=platform.good)
        _, back = await host.received(RatingEvent, 2)
        assert (back.kind, back.value) == (RatingKind.RETRACT, None)
        assert back.retracts == rate.event_id or (
            (back.message_id, back.source) == (message.id, rate.source)
        ), "a removal names the event, or the message and the reaction"
        assert opinion([rate, back]) is None

    async def test_a_changed_reaction_rates_anew(
        self, spec: ConnectorSpec, connector: Connector, host: RecordingHost, platform: PlatformDriver
    ) -> None:
        self.need(spec, Capability.REACTIONS)
        message = await self.answer(connector, host, platform)
        await platform.react(message, new=platform.good)
        await host.received(RatingEvent)
        await platform.react(message, old=platform.good, new=platform.bad)
        events = await host.received(RatingEvent, 3)
        assert opinion(events) == -1.0
        assert len({event.event_id for event in events}) == 3
        await platform.react(message, old=platform.bad, new=platform.good)
        assert opinion(await host.received(RatingEvent, 5)) == 1.0

    async def test_each_person_has_an_opinion(
        self, spec: ConnectorSpec, connector: Connector, host: RecordingHost, platform: PlatformDriver
    ) -> None:
        self.need(spec, Capability.REACTIONS)
        message = await self.answer(connector, host, platform)
        await platform.react(message, new=platform.good, user="ada")
        await platform.react(message, new=platform.bad, user="bob")
        ada, bob = await host.received(RatingEvent, 2)
        assert ada.user != bob.user
        assert (ada.value, bob.value) == (1.0, -1.0)

    async def test_other_reactions_are_no_ratings(
        self, spec: ConnectorSpec, connector: Connector, host: RecordingHost, platform: PlatformDriver
    ) -> None:
        self.need(spec, Capability.REACTIONS)
        message = await self.answer(connector, host, platform)
        await platform.react(message, new="🤔")
        await asyncio.sleep(QUIET)
        assert not [event for event in host.events if isinstance(event, RatingEvent)]

    async def test_buttons_rate_and_the_last_press_counts(
        self, spec: ConnectorSpec, connector: Connector, host: RecordingHost, platform: PlatformDriver
    ) -> None:
        self.need(spec, Capability.BUTTONS)
        message = await self.answer(connector, host, platform)
        [*_, post] = await platform.posts()
        assert post.buttons == ("good", "bad")
        await platform.press(message, "good")
        [rate] = await host.received(RatingEvent)
        assert (rate.kind, rate.value, rate.source) == (RatingKind.RATE, 1.0, "button")
        assert (rate.message_id, rate.turn) == (message.id, TURN)
        await platform.press(message, "bad")
        events = await host.received(RatingEvent, 2)
        assert opinion(events) == -1.0

    async def test_a_press_is_answered_privately(
        self, spec: ConnectorSpec, connector: Connector, host: RecordingHost, platform: PlatformDriver
    ) -> None:
        self.need(spec, Capability.BUTTONS)
        message = await self.answer(connector, host, platform)
        before = len(await platform.posts())
        await platform.press(message, "good")
        [event] = await host.received(RatingEvent)
        text = "Good. 12 of 40 ratings (28 to go)."
        receipt = Receipt(event_id=event.event_id, outcome=Outcome.ACCEPTED, text=text)
        await connector.acknowledge(event, receipt)
        assert text in await eventually(lambda: platform.notices("ada"))
        assert await platform.notices("bob") == []
        assert len(await platform.posts()) == before, "no second chat message"

    async def test_buttons_and_reactions_stand_side_by_side(
        self, spec: ConnectorSpec, connector: Connector, host: RecordingHost, platform: PlatformDriver
    ) -> None:
        self.need(spec, Capability.BUTTONS)
        self.need(spec, Capability.REACTIONS)
        message = await self.answer(connector, host, platform)
        await platform.react(message, new=platform.good)
        await platform.press(message, "bad")
        assert opinion(await host.received(RatingEvent, 2)) == -1.0, "the later one counts"
        await platform.react(message, old=platform.good)
        assert opinion(await host.received(RatingEvent, 3)) == -1.0, "the button still stands"
