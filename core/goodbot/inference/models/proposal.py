# SPDX-License-Identifier: Apache-2.0
"""A model that may be taken, and what it would cost here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from goodbot.api.estimate import ModelEstimate


@dataclass(frozen=True, kw_only=True)
class ModelOption:
    """One model of the catalogue, with what it would cost here."""

    name: str
    parameters: int
    bytes: int
    licence: str
    gated: bool
    backend: str
    estimate: ModelEstimate


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """A model that may be taken, and what taking it costs. Sizes in bytes, times in seconds."""

    source: str
    """For `goodbot.inference.models.obtain.obtain`: a directory, or `owner/name@commit`."""
    name: str
    backend: str
    device: str
    """`cpu`, `cuda` or `metal`."""
    parameters: int
    """0 where the config does not tell."""
    download: int
    """Bytes that must still come; 0 for what is on this disk."""
    disk: int
    """Bytes that are free where they go."""
    licence: str
    gated: bool
    estimate: ModelEstimate | None
    """None for an architecture that cannot be estimated."""
    unusable: str = ""
    """Why goodbot cannot load it, as a clause; empty if it can."""
    doubt: str = ""
    """Why training it may go wrong, as a clause."""
    why: str = ""
    """Why this one, in a sentence."""
    name_backend: bool = False
    """Whether another backend than the one that is taken by itself suits it better."""
    serving: Mapping[str, str] = field(default_factory=dict[str, str])
    """`[serving]` with which the server that was named goes on answering; empty where it cannot."""
    options: tuple[ModelOption, ...] = ()
    """Of `propose`: all that fit, the largest first."""
