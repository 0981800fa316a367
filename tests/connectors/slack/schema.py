# SPDX-License-Identifier: Apache-2.0
"""Slack's own types as JSON Schema: what a fake Slack was sent, and what it sent, is held to them.

The types are TypeScript (npm @slack/types, @slack/web-api, @slack/bolt); tests/node makes schemas
of them once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from goodbot_fakes.slack import FakeSlack

from tests.node.schema import Types, unavailable

__all__ = ["check_all", "check_call", "check_payload", "check_response", "unavailable"]

Json = dict[str, Any]
_TYPES = Types("slack", "Arguments", "Responses", "Events", "Interactions")
# Fields that Slack's wires have and its types do not.
_UNTYPED: dict[str, set[str]] = {
    "app_mention": {"app_id", "edited"},
    "message": {"app_id", "metadata"},
    "message.message_changed": {"message", "previous_message"},
    "message.message_deleted": {"previous_message"},
    "message.file_share": {"app_id", "client_msg_id", "team"},
    "chat.update": {"parent_user_id", "thread_ts", "ts"},
    "reactions.get": {"parent_user_id", "thread_ts"},
}


def check_call(method: str, arguments: Json) -> None:
    """Fail unless these are arguments that a Web API method takes; bolt adds a team to any."""
    known = {name: value for name, value in arguments.items() if name != "team_id"}
    _TYPES.check("Arguments", method, known)


def check_response(method: str, body: Json) -> None:
    """Fail unless Slack would answer so.

    Slack makes these types of samples, which lag behind in the blocks of messages; those are held
    to their own types where an app sends them.
    """
    body = _without_none(body)
    untyped = {"blocks", "client_msg_id"} | _UNTYPED.get(method, set())
    for message in (body.get("message", {}), *body.get("messages", ())):
        for name in untyped:
            message.pop(name, None)
    body.get("view", {}).pop("state", None)
    _TYPES.check("Responses", method, body)


def check_payload(kind: str, payload: Json) -> None:
    """Fail unless Slack would deliver this: `kind` as in Socket Mode."""
    payload = {name: value for name, value in payload.items() if name != "enterprise" or value}
    if payload.get("container", {}).get("type") == "view":  # the types are of messages and modals
        title = {"title": {"type": "plain_text", "text": "home"}}
        payload = payload | {"response_url": "", "view": title | payload["view"]}
    if kind != "events_api":
        _TYPES.check("Interactions", payload.get("type", kind), payload)
        return
    event = payload["event"]
    name = ".".join(filter(None, (event["type"], event.get("subtype"))))
    known = {key: value for key, value in event.items() if key not in _UNTYPED.get(name, ())}
    _TYPES.check("Events", name, known)


def check_all(slack: FakeSlack) -> None:
    """Hold everything that went to and fro to Slack's types."""
    for call in slack.calls:
        if call.status == 200 and call.response.get("ok"):
            check_call(call.method, call.arguments)
            check_response(call.method, call.response)
    for delivery in slack.outbox.log:
        check_payload(delivery.kind, delivery.payload)


def _without_none(value: Json) -> Json:
    """Slack says null where its types say that a field may be missing."""

    def kept(inner: object) -> Any:
        if isinstance(inner, dict):
            return dict(_items(inner))
        return [kept(item) for item in inner] if isinstance(inner, list) else inner

    def _items(inner: Json) -> Iterator[tuple[str, Any]]:
        for key, item in inner.items():
            if item is not None:
                yield key, kept(item)

    return kept(value)
