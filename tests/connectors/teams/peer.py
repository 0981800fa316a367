# SPDX-License-Identifier: Apache-2.0
"""People on a fake Teams, as the contract suite and the end-to-end test move them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from goodbot.api.actions import rating
from goodbot.api.events import ChannelKind, MessageRef
from goodbot.testing.connector_base import eventually
from goodbot.testing.platform import Post
from goodbot_connectors.teams.config import APP_PASSWORD, TeamsSettings
from goodbot_connectors.teams.presses import EXPLAIN, read
from goodbot_fakes.teams import (
    APP_ID,
    PASSWORD,
    Account,
    Dialog,
    FakeTeams,
    Message,
    TenantConversation,
    cards,
)

from tests.support import free_port

REACTIONS = {"👍": "like", "👎": "1f44e_thumbsdown", "🤔": "1f914_thinkingface"}
Json = dict[str, Any]


class TeamsPeer:
    """One tenant with a channel, the lab. Also the `PlatformDriver` of the contract suite."""

    good, bad = "👍", "👎"
    rooms = frozenset({ChannelKind.PRIVATE, ChannelKind.SHARED})

    def __init__(self, teams: FakeTeams) -> None:
        self.teams = teams
        self.people = {name: teams.person(name.title()) for name in ("ada", "bob", "carl")}
        self.lab = teams.channel("The lab", list(self.people.values()))
        teams.world.hears_all = True
        port = free_port()
        teams.endpoint = f"http://127.0.0.1:{port}/api/messages"
        self._threads: dict[str, str] = {}
        self.settings = TeamsSettings(
            app_id=APP_ID,
            tenant=teams.tenant.id,
            port=port,
            service_urls=(teams.service_url,),
            openid_metadata=teams.openid_metadata,
            token_endpoint=teams.token_endpoint,
            edit_interval=0.05,
            stream_interval=0.02,
        )
        self.environ: Mapping[str, str] = {APP_PASSWORD: PASSWORD}
        self.wrong_environ: Mapping[str, str] = {APP_PASSWORD: f"{PASSWORD[:-4]}9999"}

    def place(self, room: ChannelKind, user: str = "ada") -> TenantConversation:
        """The conversation that a room of the suite is."""
        return self.people[user].chat if room is ChannelKind.PRIVATE else self.lab

    def find(self, message: MessageRef) -> Message:
        """A message as Teams keeps it."""
        return self.teams.tenant.message(message.channel.id, message.id)

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
        place, root, quote = self.place(room, user), self._threads.get(thread, ""), None
        if reply_to:
            quote = self.teams.tenant.message(place.id, reply_to)
            root = quote.thread
        said = self.people[user].says(
            text,
            place,
            mention=mention,
            thread=root,
            quote=quote,
            files=[name.removeprefix("file ") for name in attachments],
        )
        if thread:
            self._threads.setdefault(thread, said.thread)
        return said.id

    async def say_as_bot(self, text: str, *, room: ChannelKind = ChannelKind.SHARED) -> None:
        from goodbot_fakes.teams.people import Person

        echo = Account(id="28:5c1e0000-0000-4000-8000-00000000ec40", name="Echo")
        for author in (echo, self.teams.tenant.bot):
            aad = Account(id=author.id, name=author.name, aad="5c1e0000-0000-4000-8000-0000000000aa")
            Person(account=aad, world=self.teams.world).says(text, self.place(room), mention=True)

    async def react(self, message: MessageRef, *, old: str = "", new: str = "", user: str = "ada") -> None:
        self.people[user].reacts(
            self.find(message), *([REACTIONS[new]] if new else []), instead_of=[REACTIONS[old]] if old else []
        )

    async def press(self, message: MessageRef, action: str, *, user: str = "ada") -> None:
        person, found = self.people[user], self.find(message)
        if action in ("good", "bad") and found.feedback:
            person.rates(found, good=action == "good")
            return
        for shown in (found, *reversed(person.sees())):
            for button in _buttons(shown):
                if _action(button) == action:
                    person.presses(shown, button)
                    return
        raise AssertionError(f"{user} sees no button {action}")

    async def offers(self, user: str = "ada") -> Sequence[str]:
        for message in reversed(self.people[user].sees()):
            if offered := [a for a in actions(message) if not rating(a)]:
                return [action for action in offered if action != EXPLAIN]
        return []

    async def comment(
        self, message: MessageRef, text: str, *, better: bool = False, user: str = "ada"
    ) -> None:
        dialog = await self.form(message, user)
        [send] = cards.actions(dialog.card)
        self.people[user].submits(dialog, send, {"better" if better else "reason": text})

    async def form(self, message: MessageRef, user: str = "ada") -> Dialog:
        """The form that “Say why” opens, once that is offered."""
        person, open_ = self.people[user], len(self.people[user].dialogs)

        async def offered() -> bool:
            return any(EXPLAIN in actions(shown) for shown in person.sees())

        await eventually(offered)
        await self.press(message, EXPLAIN, user=user)
        await self.teams.until(lambda: len(person.dialogs) > open_)
        return person.dialogs[-1]

    async def posts(self, room: ChannelKind = ChannelKind.PRIVATE, user: str = "ada") -> Sequence[Post]:
        names = {root: name for name, root in self._threads.items()}
        return [
            Post(
                id=message.id,
                text=message.text or shown(message),
                buttons=tuple(a for a in actions(message) if rating(a)),
                thread=names.get(message.thread, ""),
            )
            for message in self.people[user].sees(self.place(room, user))
            if message.stream != "informative"  # a progress bar, no message
            and (message.text or room is not ChannelKind.PRIVATE)
        ]

    async def notices(self, user: str = "ada") -> Sequence[str]:
        """What stands on cards in their own chat."""
        person = self.people[user]
        places = (person.chat, self.lab)
        found = [m for place in places for m in person.sees(place) if m.to or place is person.chat]
        return [*filter(None, map(shown, found)), *person.told]

    async def unacknowledged(self) -> int:
        return len(self.teams.outbox.pending)


def actions(message: Message) -> list[str]:
    """What can be pressed under a message: Teams's own thumbs, then a card's buttons."""
    thumbs = ["good", "bad"] if message.feedback else []
    return [*thumbs, *filter(None, map(_action, _buttons(message)))]


def shown(message: Message) -> str:
    """What is written on the cards of a message, with lines as they look."""
    return "\n".join(cards.text(card) for card in message.cards).replace("\n\n", "\n")


def _buttons(message: Message) -> list[Json]:
    return [button for card in message.cards for button in cards.actions(card)]


def _action(button: Json) -> str:
    pressed = read(button.get("data"))
    return pressed.action if pressed else ""
