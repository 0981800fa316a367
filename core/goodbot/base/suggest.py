# SPDX-License-Identifier: Apache-2.0
"""What things are called, and what to say after a name that nothing has: the one that was meant, or all."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeVar

from goodbot.base.worded import Worded

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


class Suggestion(NamedTuple):
    """What there is instead of a name."""

    near: str
    """The one that was meant; empty: none is like it."""
    names: list[str]
    is_off: bool
    """Whether it is the name of a plugin that is installed and off."""
    switch: str
    """The line of the config that switches such a plugin on; empty: none is off."""


def suggested(
    wanted: str, known: Iterable[str], also: Iterable[str] = (), *, cutoff: float = 0.6
) -> Suggestion:
    """What to suggest for a name that is neither in `known` nor in `also`.

    `cutoff` as `difflib.get_close_matches` has it.
    """
    off = known.off if isinstance(known, Offered) else ()
    names = sorted({*known, *also})
    near = difflib.get_close_matches(wanted, names, n=1, cutoff=cutoff)
    listed = ", ".join(f'"{name}"' for name in ((wanted,) if wanted in off else off))
    switch = f"`[plugins] enable = [{listed}]`" if off else ""
    return Suggestion(near=near[0] if near else "", names=names, is_off=wanted in off, switch=switch)


def instead(wanted: str, known: Iterable[str], also: Iterable[str] = (), *, cutoff: float = 0.6) -> str:
    """The end of a sentence about a name that is neither in `known` nor in `also`, in English."""
    found = suggested(wanted, known, also, cutoff=cutoff)
    if found.is_off:
        off = "the plugin {name} is installed and off: {switch} switches it on"
        return Worded(off, name=repr(wanted), switch=found.switch)
    hint = Worded("there are: {names}", names=", ".join(found.names) or Worded("none"))
    if found.near:
        hint = Worded("did you mean {name}?", name=repr(found.near))
    if not found.switch:
        return hint
    may = Worded("a plugin that is installed and off may have it: {switch}", switch=found.switch)
    return Worded("{hint} ({may})", hint=hint, may=may)


def version_name(version: int, *, begins: bool = False) -> str:
    """A version in a sentence: `v3`, or `the base model` for 0; `begins`: as its first word."""
    return f"v{version}" if version else f"{'The' if begins else 'the'} base model"
