# SPDX-License-Identifier: Apache-2.0
"""The app under test, as its manifest describes it, and which events are for it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from goodbot_fakes.slack.workspace import TEAM, Message, User, Workspace

Json = dict[str, Any]

SCOPES = (
    "app_mentions:read",
    "assistant:write",
    "channels:history",
    "channels:read",
    "chat:write",
    "commands",
    "groups:history",
    "groups:read",
    "im:history",
    "im:read",
    "im:write",
    "mpim:history",
    "mpim:read",
    "reactions:read",
    "reactions:write",
    "usergroups:read",
    "users:read",
)
EVENTS = (
    "agent_session_stopped",
    "app_context_changed",
    "app_home_opened",
    "app_mention",
    "assistant_thread_started",
    "member_joined_channel",
    "message.channels",
    "message.groups",
    "message.im",
    "message.mpim",
    "reaction_added",
    "reaction_removed",
)
_KIND = {"channel": "channels", "group": "groups", "im": "im", "mpim": "mpim"}
_ALWAYS = ("app_home_opened", "app_rate_limited", "app_uninstalled", "tokens_revoked")


@dataclass(kw_only=True)
class SlackApp:
    """One installed app. What it may is in `scopes`, what it is told in `events`."""

    user: User
    bot_token: str = "xoxb-100000000001-200000000002-LoopbackTokenOnly123456"  # noqa: S105
    app_token: str = "xapp-1-A0G00DB0T-300000000003-" + "0123456789abcdef" * 4
    signing_secret: str = "8f742231b10e8888abcd99yyyzzz85a5"  # noqa: S105
    scopes: set[str] = field(default_factory=lambda: set(SCOPES))
    app_scopes: set[str] = field(default_factory=lambda: {"connections:write"})
    events: set[str] = field(default_factory=lambda: set(EVENTS))
    commands: set[str] = field(default_factory=lambda: {"/rl"})
    socket_mode: bool = True
    request_url: str = ""
    """Without Socket Mode: where events, interactions and commands are sent."""

    @property
    def id(self) -> str:
        return self.user.app_id


def history_scope(kind: str) -> str:
    return f"{_KIND[kind]}:history"


def read_scope(kind: str) -> str:
    return f"{_KIND[kind]}:read"


def wanted(app: SlackApp, workspace: Workspace, event: Json) -> Iterator[Json]:
    """The events that an app gets of one that happened: none, itself, or also an `app_mention`."""
    kind = event["type"]
    place = event.get("channel") or event.get("item", {}).get("channel", "")
    channel = workspace.channels.get(place)
    if channel is not None and app.user.id not in channel.members:
        return
    if kind == "message" and channel is not None:
        name = f"message.{_KIND[channel.kind]}"
        if name in app.events and history_scope(channel.kind) in app.scopes:
            yield event
        mentioned = f"<@{app.user.id}>" in event.get("text", "")
        fresh = event.get("subtype") in (None, "file_share")
        if mentioned and fresh and channel.kind != "im" and _may(app, "app_mention"):
            left_out = ("channel_type", "subtype", "parent_user_id")
            yield {k: v for k, v in event.items() if k not in left_out} | {"type": "app_mention"}
    elif kind != "message" and _may(app, kind):
        yield event


def _may(app: SlackApp, event: str) -> bool:
    needed = {"app_mention": "app_mentions:read"}.get(event, "")
    if event.startswith("reaction_"):
        needed = "reactions:read"
    return (event in app.events or event in _ALWAYS) and (not needed or needed in app.scopes)


def event_callback(app: SlackApp, event: Json, event_id: str) -> Json:
    """What surrounds an event: docs.slack.dev/apis/events-api#event-object."""
    authorization = {
        "enterprise_id": None,
        "team_id": TEAM,
        "user_id": app.user.id,
        "is_bot": True,
        "is_enterprise_install": False,
    }
    return {
        "token": "deprecated",
        "team_id": TEAM,
        "context_team_id": TEAM,
        "context_enterprise_id": None,
        "api_app_id": app.id,
        "event": event,
        "type": "event_callback",
        "event_id": event_id,
        "event_time": int(float(event["event_ts"])),
        "authorizations": [authorization],
        "is_ext_shared_channel": False,
        "event_context": f"4-{event_id}",
    }


def across(workspace: Workspace, body: Json) -> Json:
    """A callback as it is told of a channel that people of another workspace are in.

    Then the wrapper names the author's workspace for a message, and ours for a reaction; a mention
    has ours as its `team`. The shapes are those of bolt-python's own request tests.
    """
    event = body["event"]
    place = event.get("channel") or event.get("item", {}).get("channel", "")
    channel, author = workspace.channels.get(place), workspace.users.get(event.get("user", ""))
    if channel is None or author is None:
        return body
    if all(workspace.users[one].team == TEAM for one in channel.members):
        return body
    if event["type"] == "message":
        body |= {"team_id": author.team}
    elif event["type"] == "app_mention" and author.team != TEAM:
        named = {"team": TEAM, "user_team": author.team, "source_team": author.team}
        body |= {"event": event | named}
    return body | {"is_ext_shared_channel": True}


def _actor(app: SlackApp, user: User) -> Json:
    return {
        "api_app_id": app.id,
        "token": "deprecated",
        "enterprise": None,
        "is_enterprise_install": False,
        "team": {"id": TEAM, "domain": "goodbot"},
        "user": {"id": user.id, "username": user.name, "name": user.name, "team_id": user.team},
    }


def block_actions(app: SlackApp, user: User, action: Json, where: Json) -> Json:
    """Somebody pressed something; `where` has container, channel and message, or the view."""
    return {
        "type": "block_actions",
        **_actor(app, user),
        **where,
        "actions": [action],
        "state": where.get("state", {"values": {}}),
    }


def message_action(app: SlackApp, user: User, callback_id: str, where: Json) -> Json:
    """Somebody chose a message shortcut."""
    actor = {name: value for name, value in _actor(app, user).items() if name != "api_app_id"}
    return {"type": "message_action", **actor, "callback_id": callback_id, **where}


def view_event(kind: str, app: SlackApp, user: User, view: Json, trigger_id: str) -> Json:
    """`view_submission` or `view_closed`."""
    actor = _actor(app, user)
    del actor["user"]["username"]
    payload: Json = {"type": kind, **actor, "view": view}
    if kind == "view_submission":
        return payload | {"trigger_id": trigger_id, "response_urls": []}
    return payload | {"is_cleared": False}


def slash_command(app: SlackApp, user: User, command: str, text: str, where: Json) -> Json:
    """Somebody typed `/command text`; all values are strings, as in the form that HTTP gets."""
    return {
        "token": "deprecated",
        "team_id": user.team,
        "team_domain": "goodbot",
        "user_id": user.id,
        "user_name": user.name,
        "command": command,
        "text": text,
        "api_app_id": app.id,
        "is_enterprise_install": "false",
        **where,
    }


def own(app: SlackApp, message: Message) -> bool:
    """Whether the app wrote this message."""
    return message.user == app.user.id
