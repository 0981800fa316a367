# SPDX-License-Identifier: Apache-2.0
"""conversations.*, reactions.*, users.*, usergroups.*, bots.*: reading a workspace."""

from __future__ import annotations

from typing import Any

from goodbot_fakes.slack.api import Context, method
from goodbot_fakes.slack.app import history_scope, read_scope
from goodbot_fakes.slack.errors import SlackError
from goodbot_fakes.slack.workspace import TEAM, Channel, Message

Json = dict[str, Any]


@method("conversations.open")
def conversations_open(slack: Context, arguments: Json) -> Json:
    if arguments.get("channel"):
        channel = _readable(slack, arguments["channel"])
    else:
        users = [name for name in str(arguments.get("users", "")).split(",") if name]
        if not users:
            raise SlackError("users_list_not_supplied")
        found = [slack.workspace.user(user).id for user in users]
        slack.need("im:write" if len(found) == 1 else "mpim:write")
        if len(found) > 1:
            raise SlackError("method_not_supported_for_channel_type")
        if found[0] == slack.app.user.id or slack.workspace.users[found[0]].bot_id:
            raise SlackError("cannot_dm_bot")
        channel = slack.workspace.direct(slack.app.user.id, found[0])
    full = arguments.get("return_im")
    return {"channel": _described(slack, channel) if full else {"id": channel.id}}


@method("conversations.info", required=("channel",))
def conversations_info(slack: Context, arguments: Json) -> Json:
    channel = _readable(slack, arguments["channel"])
    slack.need(read_scope(channel.kind))
    return {"channel": _described(slack, channel)}


@method("conversations.members", required=("channel",))
def conversations_members(slack: Context, arguments: Json) -> Json:
    channel = _readable(slack, arguments["channel"])
    slack.need(read_scope(channel.kind))
    members = sorted(channel.members)
    return {"members": members, "response_metadata": {"next_cursor": ""}}


@method("conversations.history", required=("channel",))
def conversations_history(slack: Context, arguments: Json) -> Json:
    channel = _history(slack, arguments)
    found = [m for m in slack.workspace.in_channel(channel.id) if m.thread_ts in ("", m.ts)]
    return _page(slack, found[::-1], arguments)


@method("conversations.replies", required=("channel", "ts"))
def conversations_replies(slack: Context, arguments: Json) -> Json:
    channel, root = _history(slack, arguments), arguments["ts"]
    if (channel.id, root) not in slack.workspace.messages:
        raise SlackError("thread_not_found")
    found = [m for m in slack.workspace.in_channel(channel.id) if root in (m.ts, m.thread_ts)]
    return _page(slack, found, arguments, always=root)


@method("reactions.get", "reactions:read", required=("channel", "timestamp"))
def reactions_get(slack: Context, arguments: Json) -> Json:
    message = _reacted(slack, arguments)
    return {"type": "message", "channel": message.channel, "message": slack.workspace.shape(message)}


@method("reactions.add", "reactions:write", required=("channel", "timestamp", "name"))
def reactions_add(slack: Context, arguments: Json) -> Json:
    slack.workspace.react(_reacted(slack, arguments), slack.app.user.id, arguments["name"])
    return {}


@method("reactions.remove", "reactions:write", required=("channel", "timestamp", "name"))
def reactions_remove(slack: Context, arguments: Json) -> Json:
    slack.workspace.unreact(_reacted(slack, arguments), slack.app.user.id, arguments["name"])
    return {}


@method("users.info", "users:read", required=("user",))
def users_info(slack: Context, arguments: Json) -> Json:
    user = slack.workspace.user(arguments["user"])
    profile = {"display_name": user.name, "real_name": user.name.title()}
    return {
        "user": {
            "id": user.id,
            "team_id": user.team,
            "name": user.name,
            "real_name": user.name.title(),
            "is_bot": bool(user.bot_id),
            "deleted": False,
            "profile": profile,
            "tz": "Europe/Berlin",
            **({"locale": user.locale} if arguments.get("include_locale") else {}),
        }
    }


@method("bots.info", "users:read", required=("bot",))
def bots_info(slack: Context, arguments: Json) -> Json:
    for user in slack.workspace.users.values():
        if user.bot_id and user.bot_id == arguments["bot"]:
            known = {"id": user.bot_id, "app_id": user.app_id, "user_id": user.id}
            return {"bot": {**known, "name": user.name, "deleted": False}}
    raise SlackError("bot_not_found")


@method("usergroups.list", "usergroups:read")
def usergroups_list(slack: Context, arguments: Json) -> Json:
    groups = [
        {"id": group.id, "team_id": TEAM, "handle": group.handle, "name": group.handle.title()}
        for group in slack.workspace.usergroups.values()
    ]
    return {"usergroups": groups}


@method("usergroups.users.list", "usergroups:read", required=("usergroup",))
def usergroups_users_list(slack: Context, arguments: Json) -> Json:
    if arguments["usergroup"] not in slack.workspace.usergroups:
        raise SlackError("no_such_subteam")
    return {"users": list(slack.workspace.usergroups[arguments["usergroup"]].users)}


def _readable(slack: Context, channel_id: str) -> Channel:
    channel = slack.workspace.channel(channel_id)
    if channel.kind != "channel" and slack.app.user.id not in channel.members:
        raise SlackError("channel_not_found")
    return channel


def _history(slack: Context, arguments: Json) -> Channel:
    channel = _readable(slack, arguments["channel"])
    slack.need(history_scope(channel.kind))
    if slack.app.user.id not in channel.members:
        raise SlackError("not_in_channel")
    return channel


def _reacted(slack: Context, arguments: Json) -> Message:
    channel = _readable(slack, arguments["channel"])
    if slack.app.user.id not in channel.members:
        raise SlackError("not_in_channel")
    return slack.workspace.message(channel.id, arguments["timestamp"])


def _page(slack: Context, found: list[Message], arguments: Json, always: str = "") -> Json:
    """One page of messages; the cursor is where the next one begins.

    The message `always`, a thread's first, comes whatever time is asked for.
    """
    start, limit = int(arguments.get("cursor") or 0), int(arguments.get("limit") or 100)
    oldest, latest = float(arguments.get("oldest") or 0), float(arguments.get("latest") or "inf")
    ends = (oldest, latest) if arguments.get("inclusive") else ()
    kept = [m for m in found if oldest < float(m.ts) < latest or float(m.ts) in ends or m.ts == always]
    more = start + limit < len(kept)
    return {
        "messages": [slack.workspace.shape(m) for m in kept[start : start + limit]],
        "has_more": more,
        "response_metadata": {"next_cursor": str(start + limit) if more else ""},
    }


def _described(slack: Context, channel: Channel) -> Json:
    bot = slack.app.user.id
    described: Json = {
        "id": channel.id,
        "is_channel": channel.kind == "channel",
        "is_im": channel.kind == "im",
        "is_mpim": channel.kind == "mpim",
        "is_group": channel.kind == "group",
        "is_private": channel.kind != "channel",
        "is_archived": False,
        "context_team_id": TEAM,
    }
    if channel.kind == "im":
        return described | {"user": next(iter(channel.members - {bot}), bot), "is_open": True}
    return described | {"name": channel.name, "is_member": bot in channel.members}
