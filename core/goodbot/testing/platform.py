# SPDX-License-Identifier: Apache-2.0
"""The far side of a connector, as `ConnectorContract` drives it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol

from goodbot.api.events import ChannelKind, MessageRef


@dataclass(frozen=True, kw_only=True, slots=True)
class Post:
    """A message of ours as a person sees it now. `buttons` are the actions under it.

    Those of an offer (see `PlatformDriver.offers`) are not among them.
    """

    id: str
    text: str
    buttons: tuple[str, ...] = ()
    thread: str = ""
    """The name that `say` gave the thread where it stands. Needed with THREADS."""


class PlatformDriver(Protocol):
    """People on one platform, and what they see. Each method returns when it has happened.

    Users go by name here (`ada`, `bob`); what ids they have is the platform's affair. There is
    one room of each kind in `rooms`, with the bot in it, able to see reactions there.
    """

    settings: Any
    """For the connector: settings that lead here."""
    environ: Mapping[str, str]
    """Secrets that are accepted here."""
    wrong_environ: Mapping[str, str]
    """Secrets that look right and are refused here."""
    rooms: frozenset[ChannelKind]
    """The kinds of rooms that there are."""
    good: str
    """A reaction that is a good rating, as a person picks it."""
    bad: str
    """The same for a bad one."""

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
        """Write a message, as a person.

        Args:
            text: What they write; beside `attachments` it may be empty.
            user: Who writes.
            room: Where.
            mention: Whether they mention the bot.
            reply_to: The id of the message of ours that they answer; empty: none.
            thread: Only with THREADS: the driver's own name for a thread or topic of that room. What is said
                under one name is in one thread, which is opened when it is first named. Where a thread hangs
                on a message (Slack), that first message may be the one it hangs on.
            attachments: Only with ATTACHMENTS: what comes with it, each an `image`, or `file NAME`.

        Returns:
            The message's id.
        """
        ...

    async def say_as_bot(self, text: str, *, room: ChannelKind = ChannelKind.SHARED) -> None:
        """Mention ours, as another bot; and where platforms echo, let our own message come back."""
        ...

    async def react(self, message: MessageRef, *, old: str = "", new: str = "", user: str = "ada") -> None:
        """React to a message, as a person: add `new`, take `old` away, or change one into the other.

        Args:
            message: A message of ours.
            old: The reaction that they had given; empty: none.
            new: The reaction that they give; empty: none.
            user: Who reacts.
        """
        ...

    async def press(self, message: MessageRef, action: str, *, user: str = "ada") -> None:
        """Press a button, as a person. Needed with BUTTONS.

        It stands under the message, or in what only this person is shown of it (`offers`).

        Args:
            message: A message of ours.
            action: The action of the button.
            user: Who presses.
        """
        ...

    async def offers(self, user: str = "ada") -> Sequence[str]:
        """List the actions of the newest `Receipt.offer` that this person can press. Needed with BUTTONS.

        Empty where none is shown. Wherever it stands (an ephemeral message, a second row under the
        answer in a private chat), nobody else may see it.
        """
        ...

    async def comment(
        self, message: MessageRef, text: str, *, better: bool = False, user: str = "ada"
    ) -> None:
        """Type what was wrong with an answer, as a person. Needed with COMMENTS.

        In whatever way the platform has: a modal that a button opens and that is then submitted, an answer
        to a prompt. The person may have called the answer bad before, and got an offer for that.

        Args:
            message: The answer.
            text: What they type.
            better: It is what the answer should have been, in place of what was wrong.
            user: Who types.
        """
        ...

    async def posts(self, room: ChannelKind = ChannelKind.PRIVATE) -> Sequence[Post]:
        """List what the bot has posted in a room, oldest first."""
        ...

    async def notices(self, user: str = "ada") -> Sequence[str]:
        """List what only this person was shown: toasts, ephemeral messages."""
        ...

    async def unacknowledged(self) -> int:
        """Return the number of events that the platform would deliver again."""
        ...


class Driver(PlatformDriver):
    """A driver of a platform with private chats alone; override what the connector's spec declares.

    `say` and `posts` are all that every platform needs, and `settings` that lead there.
    """

    environ: Mapping[str, str] = {}
    wrong_environ: Mapping[str, str] = {}
    rooms = frozenset({ChannelKind.PRIVATE})
    good, bad = "👍", "👎"

    async def say_as_bot(self, text: str, *, room: ChannelKind = ChannelKind.SHARED) -> None:
        """Do nothing: there are no bots."""

    async def react(self, message: MessageRef, *, old: str = "", new: str = "", user: str = "ada") -> None:
        """Override it with REACTIONS: see `PlatformDriver.react`."""
        self._lacks("react", "REACTIONS")

    async def press(self, message: MessageRef, action: str, *, user: str = "ada") -> None:
        """Override it with BUTTONS: see `PlatformDriver.press`."""
        self._lacks("press", "BUTTONS")

    async def offers(self, user: str = "ada") -> Sequence[str]:
        """Override it with BUTTONS: see `PlatformDriver.offers`."""
        self._lacks("offers", "BUTTONS")

    async def comment(
        self, message: MessageRef, text: str, *, better: bool = False, user: str = "ada"
    ) -> None:
        """Override it with COMMENTS: see `PlatformDriver.comment`."""
        self._lacks("comment", "COMMENTS")

    async def notices(self, user: str = "ada") -> Sequence[str]:
        """Return none; override it where something is shown to one person."""
        return ()

    async def unacknowledged(self) -> int:
        """Return 0; override it where the platform delivers again."""
        return 0

    def _lacks(self, name: str, capability: str) -> NoReturn:
        raise NotImplementedError(f"{type(self).__name__}.{name} is needed: the spec declares {capability}")
