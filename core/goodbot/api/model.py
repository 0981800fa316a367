"""A model as a plugin ships it, and as the core has found it on this machine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelSpec:
    """A model that a plugin ships. A `demo` model never answers people unasked and unlabelled."""

    name: str
    path: Path
    demo: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class ResolvedModel:
    """A checked model directory. `label` precedes every answer of a demo model."""

    name: str
    """Its identity: ratings and adapters belong to the model of this name."""
    path: Path
    label: str = ""
