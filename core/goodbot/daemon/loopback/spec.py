# SPDX-License-Identifier: Apache-2.0
"""What the platform in memory is to the host, and what a person sees on it."""

from __future__ import annotations

from dataclasses import dataclass

from goodbot.api.connector import Capability, ConnectorSpec
from goodbot.api.events import MessageRef

OWNER = "owner"
"""Who speaks when nobody else is named."""

VALUES = {"👍": 1.0, "👎": -1.0}
"""The reactions that are ratings here."""


@dataclass(frozen=True, kw_only=True)
class LoopbackSettings:
    """It has no settings."""


SPEC = ConnectorSpec(
    name="loopback",
    factory="goodbot.daemon.loopback:Loopback",
    capabilities=Capability.REACTIONS
    | Capability.BUTTONS
    | Capability.EPHEMERAL
    | Capability.GROUPS
    | Capability.COMMENTS,
    settings=LoopbackSettings,
    message_limit=1_000_000,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """What a person sees after they wrote. `turn` is empty when it cannot be rated."""

    text: str
    turn: str
    message: MessageRef
    buttons: tuple[str, ...] = ()
    """The actions under it."""
