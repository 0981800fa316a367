# SPDX-License-Identifier: Apache-2.0
"""auth.*, apps.*, views.*, assistant.*, agents.*: what concerns the app itself."""

from __future__ import annotations

from typing import Any

from goodbot_fakes.slack.api import Context, method
from goodbot_fakes.slack.app import SlackApp
from goodbot_fakes.slack.blocks import IN_VIEWS, check, with_block_ids
from goodbot_fakes.slack.errors import SlackError
from goodbot_fakes.slack.workspace import TEAM, View

Json = dict[str, Any]
_SESSION = ("active", "processing", "suspended", "closed")
_LONGEST_TITLE = 24
_LONGEST_METADATA = 3000


@method("auth.test")
def auth_test(slack: Context, arguments: Json) -> Json:
    user = slack.app.user
    return {
        "url": "https://goodbot.slack.com/",
        "team": "Good Bots",
        "team_id": TEAM,
        "user": user.name,
        "user_id": user.id,
        "bot_id": user.bot_id,
        "app_id": user.app_id,
        "is_enterprise_install": False,
    }


@method("apps.connections.open", "connections:write", app_token=True)
def apps_connections_open(slack: Context, arguments: Json) -> Json:
    if not slack.app.socket_mode:
        raise SlackError("not_allowed")  # Slack does not document which word it has for this
    address = slack.url.replace("http://", "ws://", 1)
    return {"url": f"{address}/link/?ticket={slack.open_socket()}&app_id={slack.app.id}"}


@method("views.open", required=("view",))
def views_open(slack: Context, arguments: Json) -> Json:
    user = slack.people.exchange(arguments.get("trigger_id") or "")
    view = _view(slack, user, arguments["view"], "modal")
    slack.workspace.views[view.id] = view
    return {"view": described(slack.app, view)}


@method("views.update", required=("view",))
def views_update(slack: Context, arguments: Json) -> Json:
    views = slack.workspace.views
    external = arguments.get("external_id")
    found = [v for v in views.values() if external and v.body.get("external_id") == external]
    view = found[0] if found else views.get(str(arguments.get("view_id")))
    if view is None:
        raise SlackError("not_found")
    if arguments.get("hash") not in (None, view.hash):
        raise SlackError("hash_conflict")
    fresh = _view(slack, view.user, arguments["view"], "modal")
    view.body, view.hash = fresh.body, fresh.hash
    return {"view": described(slack.app, view)}


@method("views.publish", required=("user_id", "view"))
def views_publish(slack: Context, arguments: Json) -> Json:
    user = slack.workspace.user(arguments["user_id"]).id
    before = slack.workspace.homes.get(user)
    if before and arguments.get("hash") not in (None, before.hash):
        raise SlackError("hash_conflict")
    view = _view(slack, user, arguments["view"], "home")
    view.id = before.id if before else view.id
    slack.workspace.homes[user] = view
    return {"view": described(slack.app, view)}


@method("assistant.threads.setStatus", "assistant:write", "chat:write", required=("channel_id", "thread_ts"))
def threads_set_status(slack: Context, arguments: Json) -> Json:
    _set_status(slack, arguments, str(arguments.get("status") or ""))
    return {}


@method("assistant.threads.setTitle", "assistant:write", required=("channel_id", "thread_ts", "title"))
def threads_set_title(slack: Context, arguments: Json) -> Json:
    slack.workspace.message(arguments["channel_id"], arguments["thread_ts"])
    return {}


@method("assistant.threads.setSuggestedPrompts", "assistant:write", required=("channel_id", "prompts"))
def threads_set_suggested_prompts(slack: Context, arguments: Json) -> Json:
    slack.workspace.channel(arguments["channel_id"])
    return {}


@method("agents.sessions.setStatus", "chat:write", required=("channel_id", "status"))
def sessions_set_status(slack: Context, arguments: Json) -> Json:
    status = arguments["status"]
    if status not in _SESSION:
        raise SlackError("invalid_status")
    _set_status(slack, arguments, status if status == "processing" else "")
    return {"status": status, "agent_status": status, "title": arguments.get("title") or ""}


@method("agents.sessions.rename", "chat:write", required=("channel_id", "title"))
def sessions_rename(slack: Context, arguments: Json) -> Json:
    slack.workspace.channel(arguments["channel_id"])
    return {"title": arguments["title"]}


def _set_status(slack: Context, arguments: Json, status: str) -> None:
    channel = slack.workspace.channel(arguments["channel_id"])
    if slack.app.user.id not in channel.members:
        raise SlackError("not_in_channel")
    thread = str(arguments.get("thread_ts") or "")
    if thread:
        slack.workspace.message(channel.id, thread)
    if status:
        slack.workspace.statuses[channel.id, thread] = status
    else:
        slack.workspace.statuses.pop((channel.id, thread), None)


def _view(slack: Context, user: str, body: Json, kind: str) -> View:
    problems: list[str] = []
    if body.get("type") != kind:
        problems.append(f"a view of type {kind} is expected")
    check(body.get("blocks"), IN_VIEWS, 100)
    for name in ("title", "submit", "close"):
        if len(body.get(name, {}).get("text", "")) > _LONGEST_TITLE:
            problems.append(f"{name} is longer than {_LONGEST_TITLE} characters")
    if kind == "modal":
        if not body.get("title"):
            problems.append("missing required field: title")
        if not body.get("submit") and any(b["type"] == "input" for b in body["blocks"]):
            problems.append("missing required field: submit")
    if len(body.get("private_metadata", "")) > _LONGEST_METADATA:
        problems.append(f"private_metadata is longer than {_LONGEST_METADATA} characters")
    if problems:
        messages = [f"[ERROR] {problem}" for problem in problems]
        raise SlackError("invalid_arguments", response_metadata={"messages": messages})
    mint = slack.workspace.mint
    kept = {**body, "blocks": with_block_ids(body["blocks"], mint)}
    return View(id=mint("V"), user=user, hash=f"{slack.workspace.ts()}.{mint('h')}", body=kept)


def described(app: SlackApp, view: View) -> Json:
    """A view as Slack's answers and interactions show it."""
    defaults: Json = {
        "private_metadata": "",
        "callback_id": "",
        "external_id": "",
        "state": {"values": {}},
        "previous_view_id": None,
        "clear_on_close": False,
        "notify_on_close": False,
        "close": None,
        "submit": None,
    }
    return (
        defaults
        | view.body
        | {
            "id": view.id,
            "team_id": TEAM,
            "hash": view.hash,
            "root_view_id": view.id,
            "app_id": app.id,
            "bot_id": app.user.bot_id,
            "app_installed_team_id": TEAM,
        }
    )
