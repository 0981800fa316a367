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


def together(value: Any) -> Any:
    """The same again. Raises ValueError for what is no such text, or has not its values."""
    match value:
        case {"worded": [str(), dict()]}:
            text, values = cast("tuple[str, dict[str, Any]]", value[WORDED])
            for _, name, form, conversion in Formatter().parse(text) if values else ():
                odd = form or conversion or not (name or "").isidentifier()
                if name is not None and (odd or name not in values):
                    raise ValueError(text)
            return Worded(text, **{name: together(one) for name, one in values.items()})
        case dict():
            return {name: together(one) for name, one in cast("dict[str, Any]", value).items()}
        case list():
            return [together(one) for one in cast("list[Any]", value)]
        case _:
            return value


def parts_of(reason: str) -> Mapping[str, Any]:
    """What a child says beside a reason; nothing beside one that has no values."""
    return apart(reason) if isinstance(reason, Worded) and reason.values else {}


def reason_in(said: Mapping[str, Any], name: str = "reason") -> str:
    """What a child gives as a reason, worded where its parts make the same text."""
    plain = str(said.get(name))[:_MOST]
    try:
        found = together({WORDED: said[WORDED]})
        same = isinstance(found, Worded) and found.rstrip(".") == plain.rstrip(".")
    except _BROKEN:
        return plain
    return found if same else plain


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
