# SPDX-License-Identifier: Apache-2.0
"""What people do in Slack: write, react, press, open, type commands. Each by the user's name.

Everything returns as soon as it has happened for the person; whether the app has heard of it is
asked with `FakeSlack.settled`.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from typing import Any

from goodbot_fakes.slack import app as slack_app
from goodbot_fakes.slack.app import SlackApp
from goodbot_fakes.slack.blocks import Element, elements, escape, rich_text, unescape
from goodbot_fakes.slack.delivery import Delivery, Kind
from goodbot_fakes.slack.errors import SlackError
from goodbot_fakes.slack.methods_app import described
from goodbot_fakes.slack.workspace import TEAM, Channel, Message, View, Workspace

Json = dict[str, Any]
Put = Callable[[Kind, Json], Delivery]
_TRIGGER_SECONDS = 3.0
"""How long a `trigger_id` opens a view."""
_RESPONSE_SECONDS = 1800.0
_RESPONSES = 5


class People:
    """Everybody in the workspace but the app."""

    def __init__(self, workspace: Workspace, app: SlackApp, put: Put) -> None:
        self._workspace = workspace
        self._app = app
        self._put = put
        self.url = ""
        self._triggers: dict[str, tuple[str, float]] = {}
        self._responses: dict[str, tuple[Message | None, str, str, float, int]] = {}
        self.told: dict[str, list[str]] = {}
        """What each person was told outside of messages: answers to commands, warnings."""

    def id(self, name: str) -> str:
        """The user id behind a name; a new person joins the workspace."""
        for user in self._workspace.users.values():
            if user.name == name:
                return user.id
        return self._workspace.add_user(name).id

    def guest(self, name: str, team: str) -> str:
        """The user id of a new person of another workspace, to meet in a shared channel."""
        return self._workspace.add_user(name, team=team).id

    def direct(self, name: str) -> Channel:
        """This person's direct messages with the app."""
        return self._workspace.direct(self.id(name), self._app.user.id)

    # -- messages and reactions

    def say(
        self,
        name: str,
        text: str,
        channel: str = "",
        *,
        mention: bool = False,
        thread: str = "",
        files: Sequence[Json] = (),
    ) -> Message:
        """Write, by default to the app in private; `mention` puts the app's name in front."""
        place = self._workspace.channel(channel) if channel else self.direct(name)
        place.members.add(self.id(name))
        words = escape(text)
        if mention:
            words = f"<@{self._app.user.id}> {words}"
        return self._workspace.post(
            place.id, self.id(name), words, blocks=rich_text(text), thread_ts=thread, files=list(files)
        )

    def edit(self, name: str, message: Message, text: str) -> None:
        assert message.user == self.id(name)
        self._workspace.edit(message, escape(text), rich_text(text))

    def react(self, name: str, channel: str, ts: str, emoji: str) -> None:
        self._workspace.react(self._workspace.message(channel, ts), self.id(name), emoji)

    def unreact(self, name: str, channel: str, ts: str, emoji: str) -> None:
        self._workspace.unreact(self._workspace.message(channel, ts), self.id(name), emoji)

    def notices(self, name: str) -> list[Message]:
        """The ephemeral messages that this person sees, oldest first."""
        found = [m for m in self._workspace.ephemeral.values() if m.to == self.id(name)]
        return sorted(found, key=lambda message: message.ts)

    # -- interactions

    def press(self, name: str, message: Message, choose: Callable[[Element], bool]) -> Delivery:
        """Press the first button of a message that `choose` likes."""
        element = next(e for e in elements(message.blocks) if choose(e))
        return self.press_as(name, message, element)

    def press_as(self, name: str, message: Message, element: Element) -> Delivery:
        """Press with any element, also one that the message has not: clients can be made to."""
        channel = self._workspace.channel(message.channel)
        container: Json = {
            "type": "message",
            "message_ts": message.ts,
            "channel_id": channel.id,
            "is_ephemeral": bool(message.to),
        }
        if message.thread_ts:
            container["thread_ts"] = message.thread_ts
        where: Json = {
            "container": container,
            "channel": _named(channel),
            "response_url": self._response_url(message, name),
        }
        if not message.to:
            where["message"] = self._workspace.shape(message)
        return self._act(name, element, where)

    def press_in_view(self, name: str, view: View, choose: Callable[[Element], bool]) -> Delivery:
        """Press a button of a modal or of the home tab."""
        element = next(e for e in elements(view.body["blocks"]) if choose(e))
        where: Json = {"container": {"type": "view", "view_id": view.id}, "view": described(self._app, view)}
        return self._act(name, element, where)

    def _act(self, name: str, element: Element, where: Json) -> Delivery:
        user = self._workspace.user(self.id(name))
        action: Json = {
            "type": element.spec["type"],
            "action_id": element.action_id,
            "block_id": element.block_id,
            "value": element.value,
            "text": element.spec["text"],
            "action_ts": self._workspace.ts(),
        }
        where = {**where, "trigger_id": self._trigger(user.id)}
        return self._put("interactive", slack_app.block_actions(self._app, user, action, where))

    def shortcut(self, name: str, message: Message, callback_id: str) -> Delivery:
        """Choose a message shortcut from the menu of a message."""
        user = self._workspace.user(self.id(name))
        where: Json = {
            "trigger_id": self._trigger(user.id),
            "message_ts": message.ts,
            "action_ts": self._workspace.ts(),
            "message": self._workspace.shape(message),
            "channel": _named(self._workspace.channel(message.channel)),
            "response_url": self._response_url(None, name, message.channel),
        }
        payload = slack_app.message_action(self._app, user, callback_id, where)
        return self._put("interactive", payload)

    def command(self, name: str, text: str, channel: str = "", command: str = "/rl") -> Delivery:
        """Type a slash command. Slack has none in threads: no thread is told."""
        if command not in self._app.commands or "commands" not in self._app.scopes:
            raise SlackError("unknown_command")
        user = self._workspace.user(self.id(name))
        place = self._workspace.channel(channel) if channel else self.direct(name)
        where: Json = {
            "channel_id": place.id,
            "channel_name": _named(place)["name"],
            "trigger_id": self._trigger(user.id),
            "response_url": self._response_url(None, name, place.id),
        }
        payload = slack_app.slash_command(self._app, user, command, text, where)
        return self._put("slash_commands", payload)

    # -- views

    def open_home(self, name: str, tab: str = "home") -> None:
        """Look at the app's home tab, or at its messages."""
        user = self.id(name)
        event: Json = {
            "type": "app_home_opened",
            "user": user,
            "channel": self.direct(name).id,
            "tab": tab,
            "event_ts": self._workspace.ts(),
        }
        if user in self._workspace.homes and tab == "home":
            event["view"] = described(self._app, self._workspace.homes[user])
        self._workspace.listener(event)

    def home(self, name: str) -> View | None:
        return self._workspace.homes.get(self.id(name))

    def modal(self, name: str) -> View | None:
        """The modal that this person has open, the newest if there are several."""
        found = [v for v in self._workspace.views.values() if v.user == self.id(name)]
        return found[-1] if found else None

    def submit(self, name: str, view: View, values: dict[str, str]) -> Delivery:
        """Fill in a modal and send it; `values` by the action id of each input."""
        filled: dict[str, Json] = {}
        for block in view.body["blocks"]:
            element = block.get("element", {})
            if block["type"] == "input":
                state = _state(element, values.get(element["action_id"]))
                filled.setdefault(block["block_id"], {})[element["action_id"]] = state
        state = {"state": {"values": filled}}
        return self._view_event("view_submission", name, view, state)

    def close(self, name: str, view: View) -> Delivery | None:
        """Close a modal; the app hears of it if the view says `notify_on_close`."""
        del self._workspace.views[view.id]
        if not view.body.get("notify_on_close"):
            return None
        return self._view_event("view_closed", name, view, {})

    def _view_event(self, kind: str, name: str, view: View, more: Json) -> Delivery:
        user = self._workspace.user(self.id(name))
        shape = described(self._app, view) | more
        return self._put(
            "interactive", slack_app.view_event(kind, self._app, user, shape, self._trigger(user.id))
        )

    # -- what an interaction gives the app for a while

    def _trigger(self, user: str) -> str:
        trigger = f"{uuid.uuid4().int % 10**13}.{TEAM}.{uuid.uuid4().hex}"
        self._triggers[trigger] = (user, self._workspace.clock.now())
        return trigger

    def exchange(self, trigger: str) -> str:
        """Whose trigger this is; it is good once, for three seconds."""
        if trigger not in self._triggers:
            raise SlackError("invalid_trigger_id")
        user, at = self._triggers[trigger]
        if not user:
            raise SlackError("exchanged_trigger_id")
        if self._workspace.clock.now() - at > _TRIGGER_SECONDS:
            raise SlackError("expired_trigger_id")
        self._triggers[trigger] = ("", at)
        return user

    def _response_url(self, message: Message | None, name: str, channel: str = "") -> str:
        token = uuid.uuid4().hex
        place = message.channel if message else channel
        self._responses[token] = (message, self.id(name), place, self._workspace.clock.now(), _RESPONSES)
        return f"{self.url}/response/{token}"

    def respond(self, token: str, body: Json) -> None:
        """What the app posts to a response URL: five times in half an hour."""
        if token not in self._responses:
            raise SlackError("invalid_token")
        message, user, channel, at, left = self._responses[token]
        if not left or self._workspace.clock.now() - at > _RESPONSE_SECONDS:
            raise SlackError("used_url" if not left else "expired_url")
        self._responses[token] = (message, user, channel, at, left - 1)
        text = str(body.get("text") or "")
        blocks: list[Json] = list(body.get("blocks") or ())
        if body.get("delete_original") and message is not None:
            if message.to:
                self._workspace.ephemeral.pop(message.ts, None)
            else:
                self._workspace.delete(message)
        elif body.get("replace_original") and message is not None:
            if message.to:
                message.text, message.blocks = text, blocks
            else:
                self._workspace.edit(message, text, blocks)
        elif body.get("response_type") == "in_channel":
            self._workspace.post(channel, self._app.user.id, text, blocks=blocks)
        else:
            self.whisper(user, channel, text, blocks)

    def whisper(self, user: str, channel: str, text: str, blocks: Sequence[Json] = ()) -> None:
        """Show one person something where they are."""
        message = self._workspace.whisper(channel, self._app.user.id, user, text, blocks=list(blocks))
        self.told.setdefault(user, []).append(unescape(message.text))


def _state(element: Json, value: str | None) -> Json:
    """What a form says of one input."""
    kind = element["type"]
    if kind == "plain_text_input":
        return {"type": kind, "value": value}
    options: list[Json] = element.get("options", [])
    chosen = [option for option in options if option["value"] == value]
    if kind == "checkboxes":
        return {"type": kind, "selected_options": chosen}
    return {"type": kind, "selected_option": chosen[0] if chosen else None}


def _named(channel: Channel) -> Json:
    name = {"im": "directmessage", "group": "privategroup"}.get(channel.kind, channel.name)
    return {"id": channel.id, "name": name}
