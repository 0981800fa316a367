# SPDX-License-Identifier: Apache-2.0
"""How far the next training is, and what it waits for once it has its ratings. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from goodbot.api.sentences import Condition, Reason, because

_FAULTS = ("disk", "server", "plugin", "plugin_again")
"""What a training waits for whoever asks for it."""


def progress(
    available: int, needed: int, *, at_least: bool = False, rests: bool = False, held: Condition | None = None
) -> Reason:
    """Say how far the next training is.

    Args:
        available: The ratings that it could take now.
        needed: So many it waits for.
        at_least: There may be more available.
        rests: Nothing starts before `resume`.
        held: What else it waits for, as far as that is known.

    Returns:
        A reason, of facts that everybody may know.
    """
    if available < needed or at_least:
        return because("at_least" if at_least else "until", available=available, needed=needed)
    if rests:
        return because("rests", needed=needed)
    if held is None or held.name in ("paused", "off"):  # that was over before this rating
        return because("can_start", needed=needed)
    if held.name == "manual":
        return because("full_asked", needed=needed)
    if "wanted" in held.facts:  # how many, this rating may have changed
        return because("full_later", needed=needed)
    return Reason("full_waits", {"needed": needed, "name": held.name, "facts": dict(held.facts)})


def can_be_begun(reasons: Sequence[Reason]) -> bool:
    """Whether a training has its ratings, and waits for what does not hold an owner up who asks for it."""
    return any(
        code in ("full_asked", "full_later") or (code == "full_waits" and facts["name"] not in _FAULTS)
        for code, facts in reasons
    )
