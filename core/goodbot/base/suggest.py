# SPDX-License-Identifier: Apache-2.0
"""What things are called, and what to say after a name that nothing has: the one that was meant, or all."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import TypeVar

_V = TypeVar("_V")


TERMINAL = "terminal"
"""The connector that nobody but this machine's user can open."""


class Offered(dict[str, _V]):
    """What plugins offer, by name; `off` are plugins that are installed and not switched on."""

    def __init__(self, off: Iterable[str] = ()) -> None:
        super().__init__()
        self.off = tuple(off)


def instead(wanted: str, known: Iterable[str], *, cutoff: float = 0.6) -> str:
    """The end of a sentence about an unknown name; `cutoff` as `difflib.get_close_matches` has it."""
    names = sorted(known)
    near = difflib.get_close_matches(wanted, names, n=1, cutoff=cutoff)
    hint = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(names) or 'none'}"
    if isinstance(known, Offered) and known.off:
        listed = ", ".join(f'"{name}"' for name in known.off)
        hint += f" (a plugin that is installed and off may have it: `[plugins] enable = [{listed}]`)"
    return hint


def version_name(version: int, *, begins: bool = False) -> str:
    """A version in a sentence: `v3`, or `the base model` for 0; `begins`: as its first word."""
    return f"v{version}" if version else f"{'The' if begins else 'the'} base model"
