# SPDX-License-Identifier: Apache-2.0
"""What people do in Teams: write, react, press, fill in, give feedback.

Everything returns as soon as it has happened for the person; whether the bot has heard of it is
asked with `FakeTeams.settled`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from goodbot_fakes.teams import activities, cards
from goodbot_fakes.teams.delivery import Delivery
from goodbot_fakes.teams.fields import Json, items, sub
from goodbot_fakes.teams.tenant import Account, Message, Tenant, TenantConversation

UNREACHABLE = "Unable to reach app. Please try again."


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Dialog:
    """A window with a card that one person sees over everything else."""

    title: str
    card: Json
    about: Message
    reaction: str = ""
    """`like` or `dislike`, when it asks for feedback."""


@dataclass(kw_only=True, slots=True)
class World:
    """What people act in: the tenant, and how the bot is told."""

    tenant: Tenant
    put: Callable[[Json], Delivery]
    spawn: Callable[[Any], None]
    service_url: Callable[[], str]
    hears_all: bool = False
    """Whether the bot gets messages of groups that do not mention it (resource-specific consent)."""


@dataclass(kw_only=True, slots=True, eq=False)
class Person:
    """Somebody in the tenant, at their client."""

    account: Account
    world: World
    told: list[str] = field(default_factory=list[str])
    """What only this person was shown, outside of messages: answers to presses, failures."""
    dialogs: list[Dialog] = field(default_factory=list[Dialog])
    """The dialogs that are open, the newest last."""

    @property
    def id(self) -> str:
        return self.account.id

    @property
    def chat(self) -> TenantConversation:
        """This person's chat with the bot."""
        return self.world.tenant.personal(self.account)

    def sees(self, place: TenantConversation | None = None) -> list[Message]:
        """The bot's messages in a conversation, those for this person alone included."""
        found = self.world.tenant.within(place or self.chat)
        return [m for m in found if m.author is self._bot and m.to in ("", self.id)]

    # -- messages and reactions

    def says(
        self,
        text: str,
        place: TenantConversation | None = None,
        *,
        mention: bool = False,
        thread: str = "",
        quote: Message | None = None,
        files: Sequence[str] = (),
    ) -> Message:
        """Write, by default to the bot in private."""
        where = place or self.chat
        content = activities.written(
            text,
            mentioned=self._bot if mention else None,
            quoted=quote,
            files=[activities.file(name) for name in files],
        )
        message = self.world.tenant.post(where, self.account, content, thread=thread)
        if where.kind == "personal" or mention or self.world.hears_all:
            self._tell(activities.message(self.world.tenant, self._url, message))
        return message

    def edits(self, message: Message, text: str, *, mention: bool = False) -> None:
        """Write something else in the place of an own message."""
        message.activity = activities.written(text, mentioned=self._bot if mention else None)
        self._tell(
            activities.message(
                self.world.tenant, self._url, message, type_="messageUpdate", event="editMessage"
            )
        )

    def reacts(self, message: Message, *added: str, instead_of: Sequence[str] = ()) -> None:
        """Add reactions, by Teams' names; those that they replace go in the same moment."""
        for name in instead_of:
            message.reactions[name].remove(self.id)
        for name in added:
            message.reactions.setdefault(name, []).append(self.id)
        if message.author is self._bot:  # of others' messages a bot hears nothing
            self._tell(
                activities.reaction(
                    self.world.tenant, self._url, message, self.account, added=added, removed=instead_of
                )
            )

    def unreacts(self, message: Message, *removed: str) -> None:
        """Take reactions away."""
        self.reacts(message, instead_of=removed)

    # -- feedback, cards, dialogs

    def rates(self, message: Message, *, good: bool, text: str = "") -> None:
        """Press the thumb under an answer; where Teams asks why itself, send that form."""
        assert message.feedback, "this message has no feedback controls"
        reaction = "like" if good else "dislike"
        if message.feedback == "custom":
            value: Json = {"actionName": "feedback", "actionValue": {"reaction": reaction}}
            self.invokes(message, "message/fetchTask", {"data": value}, reaction=reaction)
            return
        self._feedback(message, reaction, {"feedbackText": text})

    def presses(self, message: Message, action: Json, given: Json | None = None) -> None:
        """Press a button of a card, with what was filled in."""
        card = next(c for c in message.cards if action in cards.actions(c))
        values = cards.filled(card, given or {})
        data = sub(action, "data")
        if action["type"] == "Action.Execute":
            execute = {"type": "Action.Execute", "verb": action.get("verb", ""), "data": data | values}
            value: Json = {"action": execute, "trigger": "manual"}
            self.invokes(message, "adaptiveCard/action", value)
        elif sub(data, "msteams").get("type") == "task/fetch":
            self.invokes(message, "task/fetch", {"data": data | values, "context": _THEME})
        else:
            tenant = self.world.tenant
            self._tell(activities.submit(tenant, self._url, message, self.account, data | values))

    def submits(self, dialog: Dialog, action: Json, given: Json | None = None) -> None:
        """Press a button of a dialog, which closes it."""
        self.dialogs.remove(dialog)
        values = sub(action, "data") | cards.filled(dialog.card, given or {})
        if dialog.reaction:
            self._feedback(dialog.about, dialog.reaction, values)
        else:
            self.invokes(dialog.about, "task/submit", {"data": values, "context": _THEME})

    def invokes(self, message: Message, name: str, value: Json, *, reaction: str = "") -> Delivery:
        """Any invoke: clients can be made to send what they like."""
        activity = activities.invoke(self.world.tenant, self._url, message, self.account, name, value)
        delivery = self.world.put(activity)
        self.world.spawn(self._answered(delivery, message, reaction))
        return delivery

    # -- inside

    @property
    def _bot(self) -> Account:
        return self.world.tenant.bot

    @property
    def _url(self) -> str:
        return self.world.service_url()

    def _tell(self, activity: Json) -> None:
        self.world.put(activity)

    def _feedback(self, message: Message, reaction: str, said: Json) -> None:
        value = {"reaction": reaction, "feedback": json.dumps(said, ensure_ascii=False)}
        self.invokes(message, "message/submitAction", {"actionName": "feedback", "actionValue": value})

    async def _answered(self, delivery: Delivery, message: Message, reaction: str) -> None:
        """What the bot's answer to an invoke shows this person."""
        while delivery.state == "pending":
            await asyncio.sleep(0.005)
        answer = delivery.answer
        if delivery.state == "lost":
            self.told.append(UNREACHABLE)
        elif delivery.payload["name"] == "adaptiveCard/action":
            if str(answer.get("type", "")).endswith(".message"):
                self.told.append(answer["value"])
            elif str(answer.get("type", "")).endswith(".card.adaptive"):
                _replace_card(message, answer["value"])
        elif delivery.payload["name"] != "message/submitAction":
            task = sub(answer, "task")
            if task.get("type") == "message":
                self.told.append(task["value"])
            elif task.get("type") == "continue":
                info = sub(task, "value")
                self.dialogs.append(
                    Dialog(
                        title=info.get("title", ""),
                        card=info["card"]["content"],
                        about=message,
                        reaction=reaction,
                    )
                )


_THEME = {"theme": "default"}


def _replace_card(message: Message, card: Json) -> None:
    kept = [
        a | {"content": card} if a["contentType"].endswith(".card.adaptive") else a
        for a in items(message.activity, "attachments")
    ]
    message.activity = {**message.activity, "attachments": kept}
