# SPDX-License-Identifier: Apache-2.0
"""Words and turns of phrase that people stumble over: no text for them has one."""

from __future__ import annotations

import re

HOUSE = (
    *("gate", "claim", "claimed", "held out", "held-out", "side", "taint", "tainted", "candidate", "canary"),
    *("pointer", "quarantine", "scope", "miniature", "dice", "rollout", "fold", "digest", "ledger", "lean"),
    *("nats", "policy", "on the clock"),
)
"""Words of docs/glossary.md and of the code, which people need not know."""
BENT = (
    *(r"^What is said", r"\bof (?:yours|theirs|mine|ours|hers|his)\b", r"\b(?:may|can) everything\b", r"  "),
    *(r"[,;] of which\b", r"\bit shall be\b", r"\bof whom\b"),
)
"""Turns of phrase that a reader stumbles over."""
_HOUSE = re.compile(rf"\b(?:{'|'.join(HOUSE)})s?\b", re.I)
_SPARED = re.compile(r"`[^`]*`|\bside by side\b", re.I)


def house(text: str) -> list[str]:
    """The words of `HOUSE` in a text, but for what is to be typed as it stands."""
    return _HOUSE.findall(_SPARED.sub("`", text))


def bent(text: str) -> list[str]:
    """What a text holds of `BENT`."""
    return [found.group() for one in BENT if (found := re.search(one, text))]
