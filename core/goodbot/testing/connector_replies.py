# SPDX-License-Identifier: Apache-2.0
"""Answers on their way out."""

from __future__ import annotations

from collections.abc import Sequence

from goodbot.api.connector import Capability, Connector, ConnectorSpec
from goodbot.api.events import ChannelKind, MessageEvent, MessageRef, Reply
from goodbot.base.text import units
from goodbot.testing.connector_base import BAD, GOOD, ConnectorFixtures, eventually, words
from goodbot.testing.host import RecordingHost
from goodbot.testing.platform import PlatformDriver

TURN = "5f1e0c7a9b3d2468"
LOREM = "All work and no play makes a dull bot. 🙂 "


class RepliesContract(ConnectorFixtures):
    """send, edit, stream."""

    async def test_send_tells_which_messages_it_became(
        self, connector: Connector, host: RecordingHost, platform: PlatformDriver
    ) -> None:
        asked = await self.asked(host, platform)
        first = await connector.send(asked.channel, Reply(text="One.", reply_to=asked.message_id))
        second = await connector.send(asked.channel, Reply(text="Two."))
        posts = await platform.posts()
        assert [post.text for post in posts] == ["One.", "Two."]
        assert [post.id for post in posts] == [ref.id for ref in (*first, *second)]
        assert {ref.channel for ref in (*first, *second)} == {asked.channel}

    async def test_it_answers_where_it_was_asked(
        self, connector: Connector, host: RecordingHost, platform: PlatformDriver
    ) -> None:
        self.need_room(platform, ChannelKind.SHARED)
        await platform.say("hello", room=ChannelKind.SHARED, mention=True)
        [asked] = await host.received(MessageEvent)
        await connector.send(asked.channel, Reply(text="Hi!", reply_to=asked.message_id))
        assert [post.text for post in await platform.posts(ChannelKind.SHARED)] == ["Hi!"]
        assert await platform.posts(ChannelKind.PRIVATE) == []

    async def test_the_longest_message_fits(
        self, spec: ConnectorSpec, connector: Connector, host: RecordingHost, platform: PlatformDriver
    ) -> None:
        asked = await self.asked(host, platform)
        text = "🙂" * (spec.message_limit // 2)
        assert units(text) <= spec.message_limit
        [ref] = await connector.send(asked.channel, Reply(text=text))
        assert [(post.id, post.text) for post in await platform.posts()] == [(ref.id, text)]

    async def test_nobody_is_mentioned(
        self, connector: Connector, host: RecordingHost, platform: PlatformDriver
    ) -> None:
        asked = await self.asked(host, platform)
        text = f"ask {' or '.join(self.mentions)} or nobody"
        await connector.send(asked.channel, Reply(text=text))
        [post] = await platform.posts()
        assert words(text) == words(post.text)
        assert not set(self.mentions) & set(post.text.split())

    async def test_edit_replaces_the_text(
        self, spec: ConnectorSpec, connector: Connector, host: RecordingHost, platform: PlatformDriver
    ) -> None:
        self.need(spec, Capability.EDITS)
        asked = await self.asked(host, platform)
        [ref] = await connector.send(asked.channel, Reply(text="Draft."))
        await connector.edit(ref, Reply(text="Final."))
        await connector.edit(ref, Reply(text="Final."))
        assert [(post.id, post.text) for post in await platform.posts()] == [(ref.id, "Final.")]

    async def test_another_answer_takes_the_place_of_the_old_one(
        self, spec: ConnectorSpec, connector: Connector, host: RecordingHost, platform: PlatformDriver
    ) -> None:
        self.need(spec, Capability.EDITS)
        asked = await self.asked(host, platform)
        old = await connector.send(asked.channel, Reply(text="Old.", turn=TURN, buttons=(GOOD, BAD)))
        await connector.send(asked.channel, Reply(text="Something else."))
        stream = connector.replace(old, asked.channel)
        await stream.append("Anoth")
        await stream.append("er.")
        again = Reply(text="Another.", turn="another", buttons=(GOOD, BAD))
        refs = await stream.finish(again)
        assert refs == old
        posts = await platform.posts()
        assert [(post.id, post.text) for post in posts] == [
            (old[0].id, "Another."),
            (posts[1].id, "Something else."),
        ]
        if Capability.BUTTONS in spec.capabilities:
            assert posts[0].buttons == ("good", "bad")

    async def test_a_replaced_answer_leaves_none_of_its_words(
        self, spec: ConnectorSpec, connector: Connector, host: RecordingHost, platform: PlatformDriver
    ) -> None:
        """A long one by a short one and back, as when no new answer comes."""
        self.need(spec, Capability.EDITS)
        asked = await self.asked(host, platform)
        text = ("play " * (spec.message_limit // 3)).strip()
        first = connector.stream(asked.channel, asked.message_id)
        old = await first.finish(Reply(text=text, turn=TURN))
        assert len(old) > 1
        short = await connector.replace(old, asked.channel).finish(Reply(text="Short.", turn=TURN))
        assert short[0] == old[0]
        posts = await platform.posts()
        assert posts[0].text == "Short."
        assert not any("play" in post.text for post in posts)
        assert {post.id for post in posts} == {ref.id for ref in short}, "what carries the turn"
        back = await connector.replace(short, asked.channel).finish(Reply(text=text, turn=TURN))
        shown = {post.id: post.text for post in await platform.posts()}
        assert words("".join(shown[ref.id] for ref in back)) == words(text)

    async def test_a_stream_ends_with_the_whole_answer(
        self, connector: Connector, host: RecordingHost, platform: PlatformDriver
    ) -> None:
        asked = await self.asked(host, platform)
        stream = connector.stream(asked.channel, asked.message_id)
        for piece in ("The ans", "wer is", " 4."):
            await stream.append(piece)
        reply = Reply(text="The answer is 4.", turn=TURN, buttons=(GOOD, BAD))
        refs = await stream.finish(reply)
        [post] = await platform.posts()
        assert (post.id, post.text) == (refs[0].id, "The answer is 4.")
        if Capability.BUTTONS in connector.spec.capabilities:
            assert post.buttons == ("good", "bad")

    async def test_the_answer_takes_the_place_of_why_it_is_late(
        self, spec: ConnectorSpec, connector: Connector, host: RecordingHost, platform: PlatformDriver
    ) -> None:
        asked = await self.asked(host, platform)
        stream = connector.stream(asked.channel, asked.message_id)
        await stream.note("Learning just now.")
        await stream.append("The ans")
        refs = await stream.finish(Reply(text="The answer is 4.", turn=TURN))
        posts = await platform.posts()
        if Capability.EDITS in spec.capabilities:
            assert [(post.id, post.text) for post in posts] == [(refs[0].id, "The answer is 4.")]
        assert (posts[-1].id, posts[-1].text) == (refs[0].id, "The answer is 4.")

    async def test_a_stream_shows_the_beginning_early(
        self, spec: ConnectorSpec, connector: Connector, host: RecordingHost, platform: PlatformDriver
    ) -> None:
        self.need(spec, Capability.STREAMING)
        asked = await self.asked(host, platform)
        stream = connector.stream(asked.channel, asked.message_id)
        await stream.append("It begins")
        [post] = await eventually(platform.posts)
        assert post.text.startswith("It begins")
        assert post.buttons == (), "an answer is rated when it is whole"
        [ref] = await stream.finish(Reply(text="It begins and ends."))
        assert [(p.id, p.text) for p in await platform.posts()] == [(ref.id, "It begins and ends.")]

    async def test_a_long_streamed_answer_becomes_several_messages(
        self, spec: ConnectorSpec, connector: Connector, host: RecordingHost, platform: PlatformDriver
    ) -> None:
        asked = await self.asked(host, platform)
        text = (LOREM * (spec.message_limit // len(LOREM) * 5 // 2)).strip()
        stream = connector.stream(asked.channel, asked.message_id)
        await stream.append(text[:100])
        await stream.append(text[100:])
        refs = await stream.finish(Reply(text=text, turn=TURN, buttons=(GOOD, BAD)))
        posts = await platform.posts()
        assert len(refs) > 2
        assert [post.id for post in posts] == [ref.id for ref in refs]
        assert words("".join(post.text for post in posts)) == words(text)
        assert all(units(post.text) <= spec.message_limit for post in posts)
        if Capability.BUTTONS in spec.capabilities:
            assert [bool(post.buttons) for post in posts] == [False] * (len(posts) - 1) + [True]

    async def test_each_message_of_an_answer_is_known_before_the_answer_has_ended(
        self, connector: Connector, host: RecordingHost, platform: PlatformDriver
    ) -> None:
        """Else nobody knows it after a crash; unless the answer that is sent again takes its place."""
        asked = await self.asked(host, platform)
        text = (LOREM * (connector.spec.message_limit // len(LOREM) * 5 // 2)).strip()
        stream = connector.stream(asked.channel, asked.message_id)
        kept: list[MessageRef] = []

        async def keep(messages: Sequence[MessageRef]) -> None:
            kept[:] = messages

        stream.keep = keep
        await stream.append(text[:100])
        reply = Reply(text=text, turn=TURN, buttons=(GOOD, BAD))
        refs = await stream.finish(reply)
        if set(refs) <= set(kept):
            return
        again = connector.stream(asked.channel, asked.message_id)
        assert await again.finish(reply) == refs

    async def test_a_cancelled_stream_says_why(
        self, connector: Connector, host: RecordingHost, platform: PlatformDriver
    ) -> None:
        asked = await self.asked(host, platform)
        stream = connector.stream(asked.channel, asked.message_id)
        await stream.append("I was about to")
        await stream.cancel("My model is not running.")
        posts = await platform.posts()
        assert "My model is not running." in posts[-1].text
        assert all(post.buttons == () for post in posts)
