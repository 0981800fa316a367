# SPDX-License-Identifier: Apache-2.0
"""Messages on their way in, and when the platform is told that we have them."""

from __future__ import annotations

import asyncio

from goodbot.api.connector import Capability, Connector, ConnectorSpec
from goodbot.api.events import ChannelKind, MessageEvent, Reply
from goodbot.testing.connector_base import QUIET, ConnectorFixtures, build, eventually
from goodbot.testing.host import RecordingHost
from goodbot.testing.platform import PlatformDriver


class EventsContract(ConnectorFixtures):
    """One thing that a person does is one event, stored before it is acknowledged."""

    async def test_a_message_becomes_one_event(
        self, connector: Connector, host: RecordingHost, platform: PlatformDriver
    ) -> None:
        message_id = await platform.say("What is 2+2?\nThank you 🙂")
        [event] = await host.received(MessageEvent)
        assert event.text == "What is 2+2?\nThank you 🙂"
        assert event.message_id == message_id
        assert event.addressed
        assert event.channel.kind is ChannelKind.PRIVATE
        assert event.channel.connector == event.user.connector == connector.spec.name
        assert event.channel.account == event.user.account == connector.account
        assert event.order.time_ms > 0
        await asyncio.sleep(QUIET)
        assert len(host.events) == 1

    async def test_people_are_told_apart_and_events_have_an_order(
        self, connector: Connector, host: RecordingHost, platform: PlatformDriver
    ) -> None:
        for user in ("ada", "bob", "ada"):
            await platform.say("hi", user=user)
        first, other, again = await host.received(MessageEvent, 3)
        assert first.user == again.user
        assert first.user.id != other.user.id
        assert first.order < other.order < again.order
        assert len({event.event_id for event in host.events}) == 3

    async def test_in_a_shared_room_only_what_is_meant_for_us_is_read(
        self, connector: Connector, host: RecordingHost, platform: PlatformDriver
    ) -> None:
        self.need_room(platform, ChannelKind.SHARED)
        room = ChannelKind.SHARED
        await platform.say("nothing to do with the bot", room=room)
        await platform.say("hello there", room=room, mention=True)
        [event] = [event for event in await host.received(MessageEvent) if event.addressed]
        assert event.text == "hello there", "the mention is no part of the text"
        assert event.channel.kind is room

    async def test_an_answer_to_our_message_is_meant_for_us(
        self, connector: Connector, host: RecordingHost, platform: PlatformDriver
    ) -> None:
        self.need_room(platform, ChannelKind.SHARED)
        await platform.say("hello", room=ChannelKind.SHARED, mention=True)
        [asked] = await host.received(MessageEvent)
        [ref] = await connector.send(asked.channel, Reply(text="Yes?"))
        await platform.say("tell me more", room=ChannelKind.SHARED, reply_to=ref.id)
        event = (await host.received(MessageEvent, 2))[-1]
        assert (event.addressed, event.reply_to) == (True, ref.id)

    async def test_each_thread_is_a_conversation_of_its_own(
        self, spec: ConnectorSpec, connector: Connector, host: RecordingHost, platform: PlatformDriver
    ) -> None:
        self.need(spec, Capability.THREADS)
        self.need_room(platform, ChannelKind.SHARED)
        room = ChannelKind.SHARED
        for thread in ("one", "two", "one"):
            await platform.say("hello", room=room, mention=True, thread=thread)
        first, other, again = await host.received(MessageEvent, 3)
        assert first.channel == again.channel
        assert first.channel.id == other.channel.id
        assert first.channel.thread != other.channel.thread
        await connector.send(other.channel, Reply(text="In two.", reply_to=other.message_id))
        await connector.stream(again.channel, again.message_id).finish(Reply(text="In one."))
        posts = {post.text: post.thread for post in await platform.posts(room)}
        assert posts == {"In two.": "two", "In one.": "one"}

    async def test_what_is_attached_is_named_and_not_read(
        self, spec: ConnectorSpec, connector: Connector, host: RecordingHost, platform: PlatformDriver
    ) -> None:
        self.need(spec, Capability.ATTACHMENTS)
        await platform.say("Look!", attachments=["image", "file report.pdf"])
        await platform.say("", attachments=["image"])
        both, alone = await host.received(MessageEvent, 2)
        assert (both.text, alone.text) == ("Look!", "")
        named = ", ".join(both.attachments)
        assert "image" in named
        assert "report.pdf" in named, "a file by its name"
        assert alone.attachments == ("image",)
        assert all(len(name) <= 100 for name in both.attachments), "names, no contents"

    async def test_bots_and_our_own_messages_are_ignored(
        self, connector: Connector, host: RecordingHost, platform: PlatformDriver
    ) -> None:
        asked = await self.asked(host, platform)
        await connector.send(asked.channel, Reply(text="my own words"))
        await platform.say_as_bot("hello, fellow bot")
        await platform.say("a person again")
        events = await host.received(MessageEvent, 2)
        assert [event.text for event in events[1:]] == ["a person again"]
        assert len(host.events) == 2

    async def test_nothing_is_read_from_encrypted_rooms(
        self, connector: Connector, host: RecordingHost, platform: PlatformDriver
    ) -> None:
        self.need_room(platform, ChannelKind.ENCRYPTED)
        await platform.say("a secret", room=ChannelKind.ENCRYPTED, mention=True)
        await asyncio.sleep(QUIET)
        assert not [event for event in host.events if isinstance(event, MessageEvent)]

    async def test_nothing_is_acknowledged_before_the_commit(
        self, connector: Connector, host: RecordingHost, platform: PlatformDriver
    ) -> None:
        host.hold()
        await platform.say("keep this")
        await host.wait(lambda: bool(host.attempts))
        await asyncio.sleep(QUIET)
        assert await platform.unacknowledged() == 1
        host.release()
        await host.received(MessageEvent)

        async def none_left() -> bool:
            return await platform.unacknowledged() == 0

        assert await eventually(none_left)

    async def test_what_could_not_be_stored_comes_again(
        self, connector: Connector, host: RecordingHost, platform: PlatformDriver
    ) -> None:
        host.refuse(1)
        await platform.say("the disk is full")
        [event] = await host.received(MessageEvent)
        tried = [attempt for attempt in host.attempts if attempt]
        assert len(tried) >= 2
        assert tried[0][0].event_id == tried[1][0].event_id == event.event_id
        assert tried[0] == tried[1], "the same delivery is the same event"
        assert host.failures == []

    async def test_a_crash_between_delivery_and_commit_loses_nothing(
        self, spec: ConnectorSpec, host: RecordingHost, platform: PlatformDriver
    ) -> None:
        first = build(spec, host, platform)
        await first.start()
        host.hold()
        await platform.say("in flight")
        await host.wait(lambda: bool(host.attempts))
        await first.stop()
        host.release()
        assert host.events == []
        second = build(spec, host, platform)
        await second.start()
        [event] = await host.received(MessageEvent)
        await second.stop()
        assert host.attempts[0][0] == event

    async def test_a_crash_after_the_commit_repeats_nothing(
        self, spec: ConnectorSpec, host: RecordingHost, platform: PlatformDriver
    ) -> None:
        first = build(spec, host, platform)
        await first.start()
        host.freeze()
        await platform.say("stored")
        await host.received(MessageEvent)
        await first.stop()
        host.release()
        stored = len(host.attempts)
        second = build(spec, host, platform)
        await second.start()
        await platform.say("next")
        events = await host.received(MessageEvent, 2)
        await second.stop()
        assert [event.text for event in events] == ["stored", "next"], "a replay has the same id"
        if await host.cursor() is not None:
            again = [event for attempt in host.attempts[stored:] for event in attempt]
            assert again == events[1:], "a cursor is there to be used"

    async def test_a_restart_goes_on_after_the_last_commit(
        self, spec: ConnectorSpec, host: RecordingHost, platform: PlatformDriver
    ) -> None:
        first = build(spec, host, platform)
        await first.start()
        await platform.say("before")
        await host.received(MessageEvent)
        await first.stop()
        await platform.say("while it was down")
        second = build(spec, host, platform)
        await second.start()
        events = await host.received(MessageEvent, 2)
        await asyncio.sleep(QUIET)
        await second.stop()
        assert [event.text for event in events] == ["before", "while it was down"]
        assert len(host.events) == 2
