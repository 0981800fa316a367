# SPDX-License-Identifier: Apache-2.0
"""Reading what stands in one place of a record. Pure.

Each returns it as what it should be. Each raises Unfit where it is something else, or too much.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, cast

from goodbot.base.text import clean

_LONGEST_ID = 512
_MOST = 1000
"""Ratings, remarks or choices of one answer."""
_INT32 = 2**31


class Unfit(ValueError):  # noqa: N818  it is no error of the program
    """Why a record cannot be stored, as a sentence."""


def listed(values: Any) -> Sequence[Mapping[str, Any]]:
    """Things that are said of an answer, `()` for none."""
    if not isinstance(values, list) and values != ():
        raise Unfit("a list is missing")
    found = cast("Sequence[Mapping[str, Any]]", values)
    if len(found) > _MOST:
        raise Unfit(f"more than {_MOST} things are said of one answer")
    return found


def pairs(values: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """What each of several people said."""
    if len(values) > _MOST:
        raise Unfit(f"more than {_MOST} people have rated one answer")
    return list(values.items())


def identifier(value: Any, name: str, otherwise: str | None = None) -> str:
    """An id as platforms give them; `otherwise` where there is none."""
    if (value is None or value == "") and otherwise is not None:
        return otherwise
    if not isinstance(value, str) or not value or len(value) > _LONGEST_ID or clean(value) != value:
        raise Unfit(f"`{name}` is no id")
    return value


def text(value: Any) -> str:
    """A text."""
    if not isinstance(value, str):
        raise Unfit("a text is missing")
    return value


def number(value: Any) -> float:
    """A number that is finite."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise Unfit("a number is missing")
    return float(value)


def whole(value: Any) -> int:
    """A whole number as a database keeps one."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < _INT32:
        raise Unfit("a whole number is missing")
    return value


def wholes(values: Sequence[Any]) -> tuple[int, ...]:
    """Token ids."""
    return tuple(whole(one) for one in values)


def numbers(values: Sequence[Any]) -> tuple[float, ...]:
    """Numbers of a list."""
    return tuple(number(one) for one in values)
