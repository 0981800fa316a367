# SPDX-License-Identifier: Apache-2.0
"""What the REST API works on."""

from __future__ import annotations

from dataclasses import dataclass, field

from goodbot.base.clock import Clock

from goodbot_fakes.discord.application import Application
from goodbot_fakes.discord.gateway import Gateway
from goodbot_fakes.discord.interactions import Interactions
from goodbot_fakes.discord.world import World


@dataclass(kw_only=True)
class State:
    """One application and the world around it."""

    clock: Clock
    world: World
    application: Application
    gateway: Gateway
    interactions: Interactions
    typing: list[str] = field(default_factory=list[str])
    """The channel of each typing indicator."""
