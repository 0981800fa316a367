"""What to say after a name that nothing has: the one that was meant, or those that there are."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def instead(wanted: str, known: Iterable[str], *, cutoff: float = 0.6) -> str:
    """The end of a sentence about an unknown name; `cutoff` as `difflib.get_close_matches` has it."""
    names = sorted(known)
    near = difflib.get_close_matches(wanted, names, n=1, cutoff=cutoff)
    return f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(names) or 'none'}"
