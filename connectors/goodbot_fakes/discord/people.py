# SPDX-License-Identifier: Apache-2.0
"""People with the app in their hands: what they do becomes events and interactions, by Discord's rules."""

from __future__ import annotations

import mimetypes
from collections.abc import Callable, Sequence
from typing import Any

from goodbot_fakes.discord import components, permissions, registry
from goodbot_fakes.discord.interactions import COMMAND, COMPONENT, MODAL_SUBMIT, Interaction
from goodbot_fakes.discord.records import FORUM, Channel, Message, User
from goodbot_fakes.discord.state import State

Json = dict[str, Any]


class Person:
    """One user, human or (with `user.bot`) another bot. Actions are in their DM by default."""

    def __init__(self, state: State, user: User) -> None:
        self._state = state
        self._dismissed: set[str] = set()
        self.user = user

    @property
    def id(self) -> str:
        return self.user.id

    @property
    def dm(self) -> Channel:
        """The direct messages with the bot."""
        return self._state.world.direct(self.id)

    # -- writing

    def says(
        self,
        text: str,
        channel: Channel | None = None,
        *,
        mention: bool = False,
        reply_to: Message | None = None,
        ping: bool = True,
        files: Sequence[str] = (),
    ) -> Message:
        """Write a message; a reply pings whom it answers unless they switch that off."""
        world, channel = self._state.world, channel or self.dm
        self._may(channel, permissions.to_send(channel))
        if mention:
            text = f"<@{world.bot.id}> {text}".strip()
        users, roles, everyone = world.named_in(text)
        return world.post(
            channel,
            self.id,
            text,
            mentions=users,
            mention_roles=roles,
            mention_everyone=everyone and bool(world.rights(channel, self.id) & permissions.MENTION_EVERYONE),
            reply_to=reply_to.id if reply_to else "",
            silent_reply=not ping,
            attachments=[_attachment(world.ids.next(), name) for name in files],
        )

    def opens_thread(self, name: str, on: Message | Channel) -> Channel:
        """A thread of a message, or of its own in a channel."""
        world = self._state.world
        if isinstance(on, Message):
            return world.add_thread(name, world.channel(on.channel_id), self.id, on.id)
        return world.add_thread(name, on, self.id)

    def posts(self, title: str, text: str, forum: Channel, *, mention: bool = False) -> Message:
        """A post in a forum: a thread whose first message has its id."""
        assert forum.kind == FORUM
        thread = self._state.world.add_thread(title, forum, self.id)
        bot = self._state.world.bot.id
        words = f"<@{bot}> {text}" if mention else text
        users = [bot] if mention else []
        return self._state.world.post(thread, self.id, words, id=thread.id, mentions=users)

    def edits(self, message: Message, text: str) -> None:
        """Change a message of one's own."""
        assert message.author_id == self.id, "people edit their own messages"
        users, roles, _ = self._state.world.named_in(text)
        self._state.world.edit(message, content=text, mentions=users, mention_roles=roles)

    def deletes(self, message: Message) -> None:
        """Delete a message of one's own."""
        assert message.author_id == self.id, "people delete their own messages"
        self._state.world.delete(message)

    def reacts(self, message: Message, emoji: str) -> None:
        """Add a reaction: `👍`, or `name:id`."""
        self._may(self._state.world.channel(message.channel_id), permissions.ADD_REACTIONS)
        assert not message.to, "nobody reacts to an ephemeral message"
        self._state.world.react(message, self.id, emoji)

    def unreacts(self, message: Message, emoji: str) -> None:
        """Take a reaction away."""
        self._state.world.unreact(message, self.id, emoji)

    def closes_dms(self) -> None:
        """Let no bot write directly any more."""
        self.user.takes_messages = False

    # -- interactions

    def presses(
        self, message: Message, which: str | Callable[[Json], bool], *, forged: bool = False
    ) -> Interaction:
        """Press the button with this custom id, or the first for which `which` says so.

        With `forged` it need not be there: clients can be made to.
        """
        assert message.to in ("", self.id), "only one person sees an ephemeral message"
        found = [
            one
            for one in components.buttons(message.components)
            if (one["custom_id"] == which if isinstance(which, str) else which(one))
        ]
        if not found and forged and isinstance(which, str):
            found = [{"custom_id": which, "id": 1}]
        assert found, "there is no such button"
        assert not found[0].get("disabled"), "that button is switched off"
        data = {"component_type": 2, "custom_id": found[0]["custom_id"], "id": found[0]["id"]}
        return self._start(COMPONENT, self._state.world.channel(message.channel_id), data, message)

    def command(self, line: str, channel: Channel | None = None) -> Interaction:
        """Type `/line`: the command's name, subcommands, and the text of its first option.

        Raises `LookupError` where Discord offers no such command.
        """
        channel = channel or self.dm
        name, _, words = line.removeprefix("/").partition(" ")
        command = self._offered(registry.CHAT_INPUT, name, channel)
        options = registry.typed(command, words)
        return self._start(COMMAND, channel, _chosen(command) | {"options": options})

    def menu(self, name: str, message: Message) -> Interaction:
        """Choose a command of the message's context menu, under “Apps”."""
        world = self._state.world
        channel = world.channel(message.channel_id)
        command = self._offered(registry.ON_MESSAGE, name, channel)
        resolved = {"messages": {message.id: world.message_json(message)}}
        data = _chosen(command) | {"target_id": message.id, "resolved": resolved}
        return self._start(COMMAND, channel, data)

    def submits(self, form: Interaction, **values: str) -> Interaction:
        """Fill in a form that an interaction has opened, by custom ids, and send it."""
        assert form.modal is not None, "there is no form"
        assert form.user is self.user, "somebody else sees it"
        known = {one.get("custom_id") for one in components.walk(form.modal["components"])}
        assert values.keys() <= known, f"the form has {known}"
        filled = components.submitted(form.modal["components"], values)
        data = {"custom_id": form.modal["custom_id"], "components": filled}
        return self._start(MODAL_SUBMIT, form.channel, data, form.message, form)

    def dismisses(self, message: Message) -> None:
        """Take an ephemeral message away, as a reload of the app does with all of them."""
        self._dismissed.add(message.id)

    # -- seeing

    @property
    def form(self) -> Interaction | None:
        """The newest interaction that has opened a form for this person, if it is not yet sent."""
        mine = [one for one in self._state.interactions.log if one.user is self.user]
        sent = {id(one.opened_by) for one in mine if one.opened_by is not None}
        forms = [one for one in mine if one.modal is not None and id(one) not in sent]
        return forms[-1] if forms else None

    @property
    def notices(self) -> list[Message]:
        """What only this person sees, oldest first; also a plain “… is thinking”."""
        return [
            one
            for one in self._state.world.messages.values()
            if one.to == self.id and one.id not in self._dismissed
        ]

    def read(self, message: Message) -> str:
        """The words of a message."""
        return components.text(message.content, message.components)

    def commands(self, channel: Channel | None = None) -> list[str]:
        """The names of all commands that this person is offered there."""
        found: list[str] = []
        channel = channel or self.dm
        known = self._state.application.commands
        for command in (*known.all(), *(known.all(channel.guild_id) if channel.guild_id else ())):
            try:
                found.append(self._offered(command["type"], command["name"], channel)["name"])
            except LookupError:
                continue
        return list(dict.fromkeys(found))

    def _offered(self, kind: int, name: str, channel: Channel) -> Json:
        world = self._state.world
        context = registry.IN_GUILD if channel.guild_id else registry.IN_BOT_DM
        command = self._state.application.commands.offered(kind, name, channel.guild_id, context)
        needed = command["default_member_permissions"]
        guild = world.guild_of(channel)
        if guild is not None and needed is not None:
            mine = permissions.of_member(guild, self.id)
            if mine & int(needed) != int(needed) or (needed == "0" and mine != permissions.ALL):
                raise LookupError(f"{name!r} is not for {self.user.name}")
        return command

    def _may(self, channel: Channel, needed: int) -> None:
        rights = self._state.world.rights(channel, self.id)
        assert rights & needed, f"{self.user.name} may not do that in {channel.name or 'a DM'}"

    def _start(
        self,
        kind: int,
        channel: Channel,
        data: Json,
        message: Message | None = None,
        opened_by: Interaction | None = None,
    ) -> Interaction:
        return self._state.interactions.start(kind, self.user, channel, data, message, opened_by)


def _chosen(command: Json) -> Json:
    data = {"id": command["id"], "name": command["name"], "type": command["type"]}
    return data | ({"guild_id": command["guild_id"]} if "guild_id" in command else {})


def _attachment(id_: str, name: str) -> Json:
    address = f"http://127.0.0.1:9/attachments/{id_}/{name.replace(' ', '_')}"
    return {
        "id": id_,
        "filename": name.replace(" ", "_"),
        "size": 5,
        "url": address,
        "proxy_url": address,
        "content_type": mimetypes.guess_type(name)[0] or "application/octet-stream",
    }
