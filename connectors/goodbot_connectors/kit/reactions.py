"""Which reactions rate, for every platform that has some."""

from __future__ import annotations

from collections.abc import Callable, Iterable


def values(good: Iterable[str], bad: Iterable[str], key: Callable[[str], str]) -> dict[str, float]:
    """What each reaction of the settings is worth, from -1 to 1, by the `key` that a platform gives it."""
    return {key(one): 1.0 for one in good} | {key(one): -1.0 for one in bad}
