# SPDX-License-Identifier: Apache-2.0
"""What is being set up: where, what was there before, and the answers so far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from goodbot.api.connector import ConnectorSpec
from goodbot.api.plugins import PluginHost
from goodbot.api.setup import Identity, Question
from goodbot.config import Config
from goodbot.config.file import ConfigFile
from goodbot.config.secrets import SecretStore

if TYPE_CHECKING:
    from goodbot.inference.models.obtain import Obtained
    from goodbot.inference.models.proposal import Proposal

OWN = "custom"
DEMO = "demo"
"""The tiny model, as `goodbot.inference.models` knows it."""


@dataclass(frozen=True, kw_only=True)
class StateFound:
    """The state directory as it was found. Looking at it changes nothing."""

    config: Config
    file: ConfigFile
    plugins: PluginHost
    secrets: SecretStore
    daemon: int = 0
    """The process that runs as this goodbot now; 0: none."""

    @property
    def other_config(self) -> Path | None:
        """The config file, where it is not the state directory's own."""
        return None if self.file.path == self.config.home / "config.toml" else self.file.path

    def connector(self, name: str) -> ConnectorSpec:
        """The platform's spec; it was chosen from those that are there."""
        return self.plugins.connectors()[name]


@dataclass(kw_only=True)
class Draft:
    """The answers; empty before their step. One that is walked through again offers what it got."""

    platform: str = ""
    alone: bool = False
    """Only the platform is set up; the bot's own answers are those of the config."""
    made: list[Path] = field(default_factory=list[Path])
    """What was written before the end: the platform's manifest, and the directories that it needed."""
    settings: dict[Question, str | bool] = field(default_factory=dict[Question, str | bool])
    """Answers to the platform's own questions."""
    tokens: dict[str, str] = field(default_factory=dict[str, str], repr=False)
    """New values by the name of their environment variable; empty: what is kept stays."""
    keep: str = ""
    """Where new tokens go: `file`, `keyring` or `environment` (nowhere, the person sets them)."""
    identity: Identity | None = None
    model: str = ""
    """What `[model] path` is set to; `demo` is the tiny demonstration model, labelled."""
    chosen: tuple[Proposal, Obtained] | None = None
    """A model that was looked up in this dialogue."""
    serving: Mapping[str, str] = field(default_factory=dict[str, str])
    """What `[serving]` is set to, for a server that goes on answering."""
    backend: str = ""
    preset: str = ""
    """`OWN`: what the config file says stays."""
    schedule: str = ""
    owners: tuple[str, ...] = ()
    """User ids on the platform that are named instead of paired."""
    pair: bool = False
    start: str = ""
    missing: dict[str, str] = field(default_factory=dict[str, str])
    """What keeps the bot from working, a sentence a topic, with the command that goes on."""
