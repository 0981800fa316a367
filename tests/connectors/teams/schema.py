# SPDX-License-Identifier: Apache-2.0
"""Microsoft's own types: what a fake Teams was sent, and what it sent, is held to them.

The types are TypeScript (npm @microsoft/teams.api and @microsoft/teams.cards).
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable
from typing import Any

from goodbot_fakes.teams import Delivery, FakeTeams

from tests.node.install import HERE, node
from tests.node.schema import Types, unavailable
from tests.support import patience

__all__ = ["cards", "check_all", "check_call", "check_cards", "check_delivery", "unavailable"]

Json = dict[str, Any]
_TYPES = Types("teams", "Activities", "Calls", "Answers", "Responses")
_CARD = "application/vnd.microsoft.card.adaptive"
seen: set[str] = set()
"""Every card that a bot has sent, as JSON: one check of all is much faster than one of each."""


def check_delivery(delivery: Delivery) -> None:
    """Fail unless Teams would tell this, and may be answered so."""
    payload = delivery.payload
    name = payload.get("name") or payload["type"]
    if name == "message" and "value" in payload:
        name = "message.submit"
    _TYPES.check("Activities", name, payload)
    if payload["type"] == "invoke" and delivery.state == "acknowledged":
        _TYPES.check("Responses", name, delivery.answer)


def check_call(operation: str, body: Json) -> None:
    """Fail unless a bot may send this."""
    _TYPES.check("Calls", operation, body)


def check_all(teams: FakeTeams) -> None:
    """Hold everything that went to and fro to Microsoft's types."""
    for call in teams.calls:
        if call.status >= 300:
            continue
        if call.body:
            check_call(call.operation, call.body)
        if call.operation != "delete":
            _TYPES.check("Answers", call.operation, call.answer)
        seen.update(map(json.dumps, cards(call.body)))
    for delivery in teams.outbox.log:
        check_delivery(delivery)
        seen.update(map(json.dumps, cards(delivery.answer)))


def cards(value: object) -> Iterable[Json]:
    """The cards somewhere in a JSON value."""
    if isinstance(value, list):
        for item in value:
            yield from cards(item)
    elif isinstance(value, dict):
        if value.get("contentType") == _CARD:
            yield value["content"]
        for item in value.values():
            yield from cards(item)


def check_cards(found: Iterable[Json]) -> None:
    """Fail unless these are cards as Teams knows them, with TypeScript's own checker."""
    listed = json.dumps(list(found))
    done = subprocess.run(
        [node(), HERE / "teams_cards.mjs"],
        input=listed,
        capture_output=True,
        text=True,
        timeout=patience(120),
        check=True,
    )
    assert not done.stdout, done.stdout
