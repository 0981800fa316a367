# SPDX-License-Identifier: Apache-2.0
"""The app's manifest, made of what the code listens to and calls, so that it cannot drift.

The events are `normalize.EVENTS`, the methods `api.METHODS`; buttons, shortcut and command have
their names in `presses`. A scope that nothing needs is not asked for.
Fields as in docs.slack.dev/reference/app-manifest.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, cast
from urllib.parse import quote

from goodbot.api.commands import ABOUT, Grant, menu

from goodbot_connectors.slack.config import SlackSettings
from goodbot_connectors.slack.methods import METHODS
from goodbot_connectors.slack.normalize import EVENTS
from goodbot_connectors.slack.presses import SHORTCUT, SLASH

NEW_APP = "https://api.slack.com/apps?new_app=1"
"""Where Slack asks for a manifest."""
EVENT_SCOPES = {
    "app_home_opened": "",
    "app_mention": "app_mentions:read",
    "message.channels": "channels:history",
    "message.groups": "groups:history",
    "message.im": "im:history",
    "message.mpim": "mpim:history",
    "reaction_added": "reactions:read",
    "reaction_removed": "reactions:read",
}
"""The scope without which Slack does not send an event."""
FEATURE_SCOPES = {"slash_commands": "commands", "shortcuts": "commands", "agent_view": "assistant:write"}
"""The scope that a feature of the app brings along."""
WHY = {
    "app_mentions:read": "hears when somebody mentions it in a channel",
    "assistant:write": "is found among the agents at the top of Slack",
    "channels:history": "reads replies in its own threads of public channels it was invited to",
    "chat:write": "answers, streams and edits its answers, and shows that it is thinking",
    "commands": "offers /rl and the shortcut “Rate this answer”",
    "groups:history": "reads replies in its own threads of private channels it was invited to",
    "im:history": "reads what is written to it directly",
    "im:write": "opens a direct message: news for its owner, answers meant for one person",
    "mpim:history": "reads replies in its own threads of group messages it was added to",
    "reactions:read": "sees 👍 and 👎 on its answers, also those given while it was off",
    "usergroups:read": "lets the members of a user group teach it, where you name one",
    "users:read": "shows who is of your company in a shared channel, and what language people read",
}
"""What goodbot does with each scope, one line each."""
APP_SCOPE = "connections:write"
"""What the app-level token of Socket Mode needs; Slack's page makes it, no manifest does."""


def scopes() -> tuple[str, ...]:
    """The bot scopes that are needed, in order."""
    events = {EVENT_SCOPES[name] for name in EVENTS}
    return tuple(sorted({*METHODS.values(), *events, *FEATURE_SCOPES.values()} - {""}))


def manifest(settings: SlackSettings, *, name: str = "goodbot", url: str = "") -> dict[str, Any]:
    """The manifest as Slack has it. `url` is where a proxy takes Slack's requests in HTTP mode."""
    http = settings.mode == "http"
    request_url = {"request_url": url or f"https://YOUR-HOST{settings.path}"} if http else {}
    command: dict[str, Any] = {
        "command": SLASH,
        "description": ABOUT,
        "usage_hint": " | ".join(one.name for one in menu("private", up_to=Grant.RATE)),
        "should_escape": True,  # so that a mentioned person arrives as an id
    }
    if http:
        command["url"] = request_url["request_url"]
    return {
        "display_information": {
            "name": name,
            "description": "A bot that learns from 👍 and 👎, on your own machine",
        },
        "features": {
            "agent_view": {
                "agent_description": "Answers with your own local model, and learns from 👍 and 👎.",
                "suggested_prompts": [
                    {"title": "What can you do?", "message": "What can you do?"},
                    {"title": "How do I teach you?", "message": "How do I teach you?"},
                ],
            },
            "app_home": {
                "home_tab_enabled": True,
                "messages_tab_enabled": True,
                "messages_tab_read_only_enabled": False,
            },
            "bot_user": {"display_name": name, "always_online": False},
            "shortcuts": [
                {
                    "name": "Rate this answer",
                    "type": "message",
                    "callback_id": SHORTCUT,
                    "description": "Good or bad, why, and what would have been better",
                }
            ],
            "slash_commands": [command],
        },
        "oauth_config": {"scopes": {"bot": list(scopes())}},
        "settings": {
            "event_subscriptions": {**request_url, "bot_events": list(EVENTS)},
            "interactivity": {"is_enabled": True, **request_url},
            "org_deploy_enabled": False,
            "socket_mode_enabled": not http,
            "token_rotation_enabled": False,
        },
    }


def link(found: Mapping[str, Any]) -> str:
    """The page on which Slack makes an app, with this manifest in it (docs.slack.dev/app-manifests)."""
    return f"{NEW_APP}&manifest_json={quote(json.dumps(found, separators=(',', ':')), safe='')}"


def to_yaml(found: Mapping[str, Any]) -> str:
    """The manifest as YAML; each scope says in a comment what it is for."""
    head = "# goodbot on Slack. Made by `goodbot manifest slack`: change the code, not this file."
    return "\n".join([head, *_lines(found, "")]) + "\n"


def _lines(value: Mapping[str, Any] | list[Any], indent: str) -> Iterator[str]:
    """YAML of objects and lists; their strings are written as JSON's, which is YAML too."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            if isinstance(inner, (dict, list)):
                yield f"{indent}{name}:"
                yield from _lines(cast("Mapping[str, Any] | list[Any]", inner), f"{indent}  ")
            else:
                yield f"{indent}{name}: {_scalar(inner)}"
        return
    for item in value:
        if isinstance(item, dict):
            first, *rest = _lines(cast("Mapping[str, Any]", item), f"{indent}  ")
            yield f"{indent}- {first.lstrip()}"
            yield from rest
        else:
            why = WHY.get(str(item), "")
            yield f"{indent}- {_scalar(item)}" + (f"  # {why}" if why else "")


def _scalar(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
