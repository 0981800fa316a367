# SPDX-License-Identifier: Apache-2.0
"""On which shipped model a kept page was measured: its head says so, by the sha256 of the weights."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from goodbot_training.tiny import model_path

EARLIER = {"7f06b4916892": "2026-11-26"}
"""Models that were shipped before, and the day from which another one was."""
_SAID = re.compile(r"^\*Measured on the .*\(`([0-9a-f]{12})`\).*\*$", flags=re.M)


def shipped() -> str:
    """The first digits of the sha256 of the weights that are shipped now."""
    return hashlib.sha256((model_path() / "model.safetensors").read_bytes()).hexdigest()[:12]


def headed(text: str, kept: Path | None = None) -> str:
    """A page with the line under its title."""
    title, _, rest = text.partition("\n\n")
    return f"{title}\n\n{measured_on(kept)}\n\n{rest}"


def refuse_mixture(kept: Path) -> None:
    """Courses of two models are never one page: what is kept is added to on its own model only."""
    if of(kept.read_text(encoding="utf-8")) != shipped():
        raise SystemExit(f"{kept.name} was measured on an earlier model: all of it anew, without --kept.")


def measured_on(kept: Path | None = None) -> str:
    """The line for a page's head: of today's model, or of that of `kept`, the page there is.

    A page that is only written anew, from courses that are kept, is still one of the model of those courses.
    """
    model = (of(kept.read_text(encoding="utf-8")) if kept and kept.exists() else "") or shipped()
    if date := EARLIER.get(model):
        return f"*Measured on the model before {date} (`{model}`); the shipped one is newer.*"
    return f"*Measured on the shipped model (`{model}`).*"


def of(page: str) -> str:
    """The model that a page's head names; nothing if it names none."""
    found = _SAID.search("\n".join(page.splitlines()[:8]))
    return found[1] if found else ""
