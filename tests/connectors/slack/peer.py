# SPDX-License-Identifier: Apache-2.0
"""People on a fake Slack, as the contract suite and the end-to-end test move them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from goodbot.api.events import ChannelKind, MessageRef
from goodbot.testing.connector_base import eventually
from goodbot.testing.platform import Post
from goodbot_connectors.slack.config import APP_TOKEN, BOT_TOKEN, SIGNING_SECRET, SlackSettings
from goodbot_connectors.slack.presses import EXPLAIN, read
from goodbot_fakes.slack import FakeSlack, Message
from goodbot_fakes.slack.blocks import Element, elements, shown
from goodbot_fakes.slack.workspace import file

EMOJI = {"👍": "+1", "👎": "-1", "🤔": "thinking_face", "🎉": "tada", "💩": "hankey"}
Json = dict[str, Any]


class SlackPeer:
    """One workspace with a channel, the lab. Also the `PlatformDriver` of the contract suite."""

    good, bad = "👍", "👎"
    rooms = frozenset({ChannelKind.PRIVATE, ChannelKind.SHARED})

    def __init__(self, slack: FakeSlack) -> None:
        self.slack = slack
        people = [slack.people.id(name) for name in ("ada", "bob", "carl")]
        self.lab = slack.workspace.add_channel("lab", [*people, slack.app.user.id])
        self.echo = slack.workspace.add_user("echo", app_id="A00000ECH0", bot_id="B00000ECH0")
        self.lab.members.add(self.echo.id)
        self._threads: dict[tuple[str, str], str] = {}
        self.settings = SlackSettings(api_base=slack.api_url, append_interval=0.02, edit_interval=0.05)
        self.environ: Mapping[str, str] = {
            BOT_TOKEN: slack.app.bot_token,
            APP_TOKEN: slack.app.app_token,
            SIGNING_SECRET: slack.app.signing_secret,
        }
        self.wrong_environ: Mapping[str, str] = {
            name: f"{value[:-4]}9999" for name, value in self.environ.items()
        }

    def place(self, room: ChannelKind, user: str = "ada") -> str:
        """The channel id of a room."""
        shared = room is ChannelKind.SHARED
        return self.lab.id if shared else self.slack.people.direct(user).id

    async def say(
        self,
        text: str,
        *,
        user: str = "ada",
        room: ChannelKind = ChannelKind.PRIVATE,
        mention: bool = False,
        reply_to: str = "",
        thread: str = "",
        attachments: Sequence[str] = (),
    ) -> str:
        place = self.place(room, user)
        root = self._threads.get((place, thread), "") if thread else ""
        if reply_to:
            answered = self.slack.workspace.message(place, reply_to)
            root = answered.thread_ts or answered.ts
        message = self.slack.people.say(
            user, text, place, mention=mention, thread=root, files=[_file(n) for n in attachments]
        )
        if thread and not root:
            self._threads[place, thread] = message.ts
        return message.ts

    async def say_as_bot(self, text: str, *, room: ChannelKind = ChannelKind.SHARED) -> None:
        us = self.slack.app.user
        for author in (self.echo.id, us.id):
            self.slack.workspace.post(self.place(room), author, f"<@{us.id}> {text}")

    async def react(self, message: MessageRef, *, old: str = "", new: str = "", user: str = "ada") -> None:
        people, at = self.slack.people, (message.channel.id, message.id)
        if old:
            people.unreact(user, *at, EMOJI.get(old, old))
        if new:
            people.react(user, *at, EMOJI.get(new, new))

    async def press(self, message: MessageRef, action: str, *, user: str = "ada") -> None:
        under = self.slack.workspace.message(message.channel.id, message.id)
        for place in (under, *reversed(self.slack.people.notices(user))):
            if action in actions(place):
                self.slack.people.press(user, place, lambda found: action_of(found) == action)
                return
        raise AssertionError(f"{user} sees no button {action}")

    async def offers(self, user: str = "ada") -> Sequence[str]:
        for notice in reversed(self.slack.people.notices(user)):
            if found := actions(notice):
                return [action for action in found if action != EXPLAIN]
        return []

    async def comment(
        self, message: MessageRef, text: str, *, better: bool = False, user: str = "ada"
    ) -> None:
        before = self.slack.people.modal(user)

        async def offered() -> bool:
            return any(EXPLAIN in actions(notice) for notice in self.slack.people.notices(user))

        await eventually(offered)
        await self.press(message, EXPLAIN, user=user)
        await self.slack.until(lambda: self.slack.people.modal(user) not in (None, before))
        view = self.slack.people.modal(user)
        assert view is not None
        self.slack.people.submit(user, view, {"better" if better else "reason": text})
        await self.slack.until(lambda: self.slack.people.modal(user) is not view)

    async def posts(self, room: ChannelKind = ChannelKind.PRIVATE, user: str = "ada") -> Sequence[Post]:
        place = self.place(room, user)
        names = {(at, root): name for (at, name), root in self._threads.items()}
        return [
            Post(
                id=message.ts,
                text=shown(message.text, message.blocks),
                buttons=tuple(actions(message)),
                thread=names.get((place, message.thread_ts), ""),
            )
            for message in self.slack.workspace.in_channel(place)
            if message.user == self.slack.app.user.id
        ]

    async def notices(self, user: str = "ada") -> Sequence[str]:
        found = self.slack.people.notices(user)
        return [shown(notice.text, notice.blocks) for notice in found]

    async def unacknowledged(self) -> int:
        return len(self.slack.outbox.pending)


def action_of(element: Element) -> str:
    """What a button of ours does."""
    return read(element.value)[0]


def actions(message: Message) -> list[str]:
    """The actions of the buttons of a message."""
    return [action_of(element) for element in elements(message.blocks)]


def _file(name: str) -> Json:
    """`image`, or `file NAME`, as the contract names attachments."""
    return file("photo.png" if name == "image" else name.removeprefix("file "))
