# SPDX-License-Identifier: Apache-2.0
"""Components of messages and forms: what is taken, and what is seen of it.

discord.com/developers/docs/components/reference
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from goodbot_fakes.discord.errors import invalid_form, too_long

Json = dict[str, Any]

ROW, BUTTON, SELECT, INPUT = 1, 2, 3, 4
SECTION, TEXT, CONTAINER, LABEL = 9, 10, 17, 18
CHECKBOX_GROUP, CHECKBOX = 22, 23
_DEFAULTS: dict[int, Json] = {
    CONTAINER: {"accent_color": None, "spoiler": False},
    14: {"spacing": 1, "divider": True},
    SELECT: {"min_values": 1, "max_values": 1},
}
_LINK = 5
_MOST, _MOST_TEXT = 40, 4000


def walk(components: Sequence[Json]) -> Iterator[Json]:
    """All of them, outermost first."""
    for component in components:
        yield component
        yield from walk(component.get("components") or ())
        for name in ("accessory", "component"):
            if name in component:
                yield from walk([component[name]])


def buttons(components: Sequence[Json]) -> list[Json]:
    """The buttons that can be pressed."""
    return [one for one in walk(components) if one["type"] == BUTTON and "custom_id" in one]


def text(content: str, components: Sequence[Json]) -> str:
    """All words of a message, as a person reads them."""
    shown = [one["content"] for one in walk(components) if one["type"] == TEXT]
    return "\n".join(filter(None, (content, *shown)))


def accept(components: Sequence[Json], *, v2: bool) -> list[Json]:
    """What Discord keeps of components that a bot sends. Raises `DiscordError`."""
    found = list(walk(components))
    ids = [one["custom_id"] for one in found if "custom_id" in one]
    if len(set(ids)) < len(ids):
        raise invalid_form(
            "components", "COMPONENT_CUSTOM_ID_DUPLICATED", "Component custom id cannot be duplicated"
        )
    for one in found:
        if one["type"] == BUTTON and ("custom_id" in one) == (one["style"] == _LINK):
            raise invalid_form("components", "BUTTON_COMPONENT_CUSTOM_ID", "A custom id or a url")
    if not v2 and any(one["type"] != ROW for one in components):
        raise invalid_form("components", "UNION_TYPE_CHOICES", 'Value of field "type" must be one of (1,).')
    if len(found) > _MOST or (not v2 and len(components) > 5):
        raise invalid_form("components", "BASE_TYPE_BAD_LENGTH", "Too many components")
    if sum(len(one["content"]) for one in found if one["type"] == TEXT) > _MOST_TEXT:
        raise too_long("components", _MOST_TEXT)
    numbers = itertools.count(1)
    return [_kept(one, numbers) for one in components]


def _kept(component: Json, ids: Iterator[int]) -> Json:
    given: Json = {name: value for name, value in component.items() if value is not None}
    kept: Json = {"id": next(ids), **_DEFAULTS.get(given["type"], {}), **given}
    if "components" in kept:
        kept["components"] = [_kept(one, ids) for one in kept["components"]]
    for name in ("accessory", "component"):
        if name in kept:
            kept[name] = _kept(kept[name], ids)
    return kept


def submitted(components: Sequence[Json], values: dict[str, str]) -> list[Json]:
    """A form as a person sends it; `values` by custom id. What is required must be given."""
    filled: list[Json] = []
    for number, component in enumerate(components, 1):
        if component["type"] == LABEL:
            inner = _answer(component["component"], values, 100 + number)
            filled.append({"type": LABEL, "id": number, "component": inner})
        elif component["type"] == ROW:
            inner = _answer(component["components"][0], values, 100 + number)
            filled.append({"type": ROW, "id": number, "components": [inner]})
        else:
            filled.append({"type": component["type"], "id": number})
    return filled


def _answer(field: Json, values: dict[str, str], id_: int) -> Json:
    name, kind = field["custom_id"], field["type"]
    value = values.get(name, field.get("value") or "")
    # A text field and a menu are required unless they say otherwise.
    assert value or field.get("required") is False, f"{name} is required"
    answer: Json = {"type": kind, "id": id_, "custom_id": name}
    if kind == INPUT:
        assert len(value) <= (field.get("max_length") or 4000), f"{name} is too long"
        assert len(value) >= (field.get("min_length") or 0) or not value, f"{name} is too short"
        return answer | {"value": value}
    if kind == CHECKBOX:
        return answer | {"value": bool(value)}
    known = {option["value"] for option in field["options"]}
    assert not value or value in known, f"{name} has no option {value}"
    if kind in (SELECT, CHECKBOX_GROUP):
        return answer | {"values": [value] if value else []}
    return answer | {"value": value or None}
