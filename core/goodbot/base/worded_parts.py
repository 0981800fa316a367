# SPDX-License-Identifier: Apache-2.0
"""A worded text in its parts, as JSON holds it: for the database, and for children that say what went wrong.

A child may be anybody's by then: what it gives in parts counts only where they make the plain text that it
gives beside them, so it can say nothing more with them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from string import Formatter
from typing import Any, cast

from goodbot.base.worded import Worded, said_by

WORDED = "worded"
"""Where the parts stand: the text, and its values."""
_MOST = 500
"""Characters of what a child says that are kept."""
_DEEPEST, _FIELDS, _LONGEST = 12, 20, 20_000
"""How deep parts may lie in each other, how many values a text may name, and how long it may become."""
_BROKEN = (LookupError, TypeError, ValueError, AttributeError, RecursionError)


def apart(value: Any) -> Any:
    """What is worded as its text and its values, so that it can be said in any language later."""
    match value:
        case Worded():
            return {WORDED: [value.text, {name: apart(one) for name, one in value.values.items()}]}
        case BaseException():
            return apart(said_by(value))
        case Mapping():
            return {name: apart(one) for name, one in cast("Mapping[str, Any]", value).items()}
        case list() | tuple():
            return [apart(one) for one in cast("Sequence[Any]", value)]
        case str() | int() | float() | None:
            return value
        case _:
            return str(value)


def together(value: Any, depth: int = 0) -> Any:
    """The same again. Raises ValueError for what is no such text, has not its values, or grows too large.

    A few short lines that name each other would make a text of gigabytes.
    """
    if depth > _DEEPEST:
        raise ValueError("parts lie too deep in each other")
    match value:
        case {"worded": [str(), dict()]}:
            text, values = cast("tuple[str, dict[str, Any]]", value[WORDED])
            made = {name: together(one, depth + 1) for name, one in values.items()}
            named = _named(text) if made else []
            if not set(named) <= made.keys() or len(named) > _FIELDS:
                raise ValueError(text[:_MOST])
            if len(text) + sum(len(str(made[name])) for name in named) > _LONGEST:
                raise ValueError("that text is too long")
            return Worded(text, **made)
        case dict():
            return {name: together(one, depth + 1) for name, one in cast("dict[str, Any]", value).items()}
        case list():
            return [together(one, depth + 1) for one in cast("list[Any]", value)]
        case _:
            return value


def _named(text: str) -> list[str]:
    """The values that a text names. Raises ValueError for one that asks more of them than to be put in."""
    found: list[str] = []
    for _, name, form, conversion in Formatter().parse(text):
        if form or conversion or (name is not None and not name.isidentifier()):
            raise ValueError(text[:_MOST])
        if name is not None:
            found.append(name)
    return found


def _says_all(said: Worded) -> bool:
    """Whether each of its values is in its text, and so on: what is not shown is not to be kept."""
    if said.values and set(_named(said.text)) != set(said.values):
        return False
    return all(_says_all(one) for one in said.values.values() if isinstance(one, Worded))


def parts_of(reason: str) -> Mapping[str, Any]:
    """What a child says beside a reason; nothing beside one that has no values."""
    return apart(reason) if isinstance(reason, Worded) and reason.values else {}


def reason_in(said: Mapping[str, Any], name: str = "reason") -> str:
    """What a child gives as a reason, worded where its parts make the same text."""
    plain = str(said.get(name))[:_MOST]
    try:
        found = together({WORDED: said[WORDED]})
        same = isinstance(found, Worded) and found.rstrip(".") == plain.rstrip(".") and _says_all(found)
    except _BROKEN:
        return plain
    return found if same and len(found) <= len(plain) + 1 else plain


def reasons_in(said: Mapping[str, Any], name: str) -> list[str]:
    """The same of a list, with what is beside each in `parts`."""
    plain: list[Any] = list(said.get(name) or ())
    parts: Any = said.get("parts")
    beside = cast("list[Any]", parts) if isinstance(parts, list) else []
    if len(beside) != len(plain):
        beside = [None] * len(plain)
    return [reason_in({**_object(part), "reason": one}) for one, part in zip(plain, beside, strict=True)]


def _object(said: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", said) if isinstance(said, dict) else {}
