# SPDX-License-Identifier: Apache-2.0
"""Payloads as a platform sends them, and the events that they become: `recordings/PLATFORM/*.json`.

A file maps names to cases; a case holds a payload, and in `events` what its events are at least.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from goodbot.api.events import Event, RatingEvent


def recordings(platform: str) -> dict[str, dict[str, Any]]:
    """Every case of a platform by `FILE: NAME`."""
    folder = Path(__file__).parent / "recordings" / platform
    found = {
        f"{path.stem}: {name}": case
        for path in sorted(folder.glob("*.json"))
        for name, case in json.loads(path.read_text(encoding="utf-8")).items()
    }
    assert found, f"nothing is recorded in {folder}"
    return found


def shown(events: Iterable[Event], wanted: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of each event what the case says of it, to be compared with `wanted`; as many as there are."""
    pairs = zip(events, wanted, strict=True)
    return [{name: facts(event)[name] for name in told} for event, told in pairs]


def facts(event: Event) -> dict[str, Any]:
    """An event under the names that cases use."""
    found = {name: getattr(event, name) for name in type(event).__dataclass_fields__}
    rating = {"rating": event.kind.value} if isinstance(event, RatingEvent) else {}
    return (
        found
        | rating
        | {
            "event": type(event).__name__,
            "user": event.user.id,
            "channel": event.channel.id,
            "kind": event.channel.kind.value,
            "thread": event.channel.thread,
            "time_ms": event.order.time_ms,
            "attachments": list(getattr(event, "attachments", [])),
        }
    )
