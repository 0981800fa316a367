# SPDX-License-Identifier: Apache-2.0
"""What things are called, and what to say after a name that nothing has: the one that was meant, or all."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from typing import TypeVar

_V = TypeVar("_V")


TERMINAL = "terminal"
"""The connector that nobody but this machine's user can open."""


class Offered(dict[str, _V]):
    """What plugins offer, by name; `off` are plugins that are installed and not switched on."""

    def __init__(self, off: Iterable[str] = ()) -> None:
        super().__init__()
        self.off = tuple(off)

    def only(self, fits: Callable[[_V], bool]) -> Offered[_V]:
        """Those that fit; what is off might."""
        found = Offered[_V](self.off)
        found.update((name, one) for name, one in self.items() if fits(one))
        return found


def instead(wanted: str, known: Iterable[str], also: Iterable[str] = (), *, cutoff: float = 0.6) -> str:
    """The end of a sentence about a name that is neither in `known` nor in `also`.

    `cutoff` as `difflib.get_close_matches` has it.
    """
    off = known.off if isinstance(known, Offered) else ()
    if wanted in off:
        return f'the plugin {wanted!r} is installed and off: `[plugins] enable = ["{wanted}"]` switches it on'
    names = sorted({*known, *also})
    near = difflib.get_close_matches(wanted, names, n=1, cutoff=cutoff)
    hint = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(names) or 'none'}"
    if off:
        listed = ", ".join(f'"{name}"' for name in off)
        hint += f" (a plugin that is installed and off may have it: `[plugins] enable = [{listed}]`)"
    return hint


def version_name(version: int, *, begins: bool = False) -> str:
    """A version in a sentence: `v3`, or `the base model` for 0; `begins`: as its first word."""
    return f"v{version}" if version else f"{'The' if begins else 'the'} base model"
