# SPDX-License-Identifier: Apache-2.0
"""Where a setting stands in a config, whatever names somebody has given its sections."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, cast

Place = tuple[str, ...]
"""The names of its section, and its own; written as one text, one could hide another."""


def leaves(table: Mapping[str, Any], within: Place = ()) -> Iterator[tuple[Place, Any]]:
    """Place and value of all settings."""
    for key, value in table.items():
        place = (*within, key)
        if isinstance(value, dict):
            yield from leaves(cast("dict[str, Any]", value), place)
        else:
            yield place, value


def section(place: Place) -> str:
    """A section as it stands in the file; empty for none."""
    return f"[{'.'.join(map(_written, place))}]" if place else ""


def setting(place: Place) -> str:
    """A setting with its section, `[http] port`; a section alone where it has no name."""
    name = _written(place[-1]) if place[-1] else ""
    return f"{section(place[:-1])} {name}".strip()


def _written(name: str) -> str:
    plain = name.isascii() and name.replace("-", "_").isidentifier()
    return name if plain else json.dumps(name)
