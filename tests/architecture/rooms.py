# SPDX-License-Identifier: Apache-2.0
"""The rooms of the house: which module stands in which, and which room may use which.

A room is a part of the product. It is on a floor, and uses what is on the floors below. What is in
`goodbot/ROOM/` is in that room; `NOT_YET` says where all else belongs. Whoever moves a file there
takes its row off, and nothing else changes here.
"""

from __future__ import annotations

from functools import cache

FLOORS = {
    "base": 1,  # no idea of goodbot's in it
    "config": 2,
    "api": 3,  # what plugins implement and exchange
    "store": 4,  # SQLite, and all SQL
    "access": 5,  # who may
    "inference": 5,  # what answers
    "learning": 6,  # what learns
    "conversation": 7,  # what is said
    "commands": 8,
    "daemon": 9,  # one running goodbot
    "features": 10,  # what not everybody needs, each a plugin of our own
    "cli": 10,
    "testing": 10,  # what plugin authors test with
    "connectors": 11,
    "fakes": 11,
    "training": 11,
    # `goodbot demo`: a program around a goodbot of its own. Nothing public opens one: `testing.Pilot` needs
    # pytest, which no user has, and a door for the demo alone would be longer than its four imports.
    "demo": 12,
}
PACKAGES = {
    "connectors": "goodbot_connectors",
    "fakes": "goodbot_fakes",
    "training": "goodbot_training",
    "demo": "goodbot_training.tiny.demo",
}
"""Rooms outside of the core."""
PLUGINS = {"features", "connectors", "training"}
"""No other room imports them, and of the core they use the public API only: the two sets below."""
OPEN = {"base", "api"}
OPEN_TOO = {"goodbot.config.secrets", "goodbot.config.lock"}

ALLOWED = {
    room: OPEN if room in PLUGINS else {low for low in FLOORS if FLOORS[low] < floor} - PLUGINS
    for room, floor in FLOORS.items()
} | {"demo": {low for low in FLOORS if low != "demo"}}
"""Which rooms a room may import from, besides its own."""

TRAINING = (
    *("job", "memory", "backends", "objectives", "gate", "learnt", "predicting"),
    *("round", "planning", "process", "formats", "tracking", "tiny"),
)
"""The folders of training: each imports only from those before it."""

NOT_YET = {"cli": "__main__"}
"""Of `goodbot`: a module, a package with all that is in it, or one definition. The longest name decides."""


@cache
def places() -> dict[str, str]:
    """The room of every name that decides."""
    return {
        "goodbot": "api",  # what it offers by name
        **{package: room for room, package in PACKAGES.items()},
        **{f"goodbot.{room}": room for room in FLOORS if room not in PACKAGES},
        **{f"goodbot.{name}": room for room, names in NOT_YET.items() for name in names.split()},
    }


def place(name: str) -> str | None:
    """The name in `places` that decides for a module or a definition; None for what is not ours."""
    while name not in places():
        name, _, _ = name.rpartition(".")
        if not name:
            return None
    return name


def allowed(module: str, name: str) -> bool:
    """Whether `module` may import `name`."""
    here, there = place(module), place(name)
    if here is None or there is None:
        return True
    room, other = places()[here], places()[there]
    open_too = room in PLUGINS and any(name == one or name.startswith(f"{one}.") for one in OPEN_TOO)
    return room == other or other in ALLOWED[room] or open_too
