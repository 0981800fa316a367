# SPDX-License-Identifier: Apache-2.0
"""What answers and trains here: the device that is found, and the backend that fits it."""

from __future__ import annotations

import platform
import shutil
import sys
from pathlib import Path

from goodbot.api.registry import automatic_backend
from goodbot.base.installed import missing_modules
from goodbot.base.packages import install_line
from goodbot.cli.setup import extras
from goodbot.cli.setup.dialogue import Choice, Dialogue
from goodbot.cli.setup.draft import Draft, StateFound

_ABOUT = {
    "mlx": "for Apple GPUs; on other processors it is slow",
    "torch": "for NVIDIA GPUs (CUDA), and quick on processors",
}


def device() -> str:
    """`Metal`, `CUDA` or `CPU`, found without importing a framework."""
    if sys.platform == "darwin" and platform.machine() == "arm64":
        return "Metal"
    if Path("/proc/driver/nvidia/version").exists() or shutil.which("nvidia-smi"):
        return "CUDA"
    return "CPU"


def ask_backend(dialogue: Dialogue, place: StateFound, draft: Draft) -> None:
    """Which backend; its packages are installed if the person agrees."""
    specs = place.plugins.backends()
    here = device()
    names = {
        "Metal": "an Apple GPU (Metal)",
        "CUDA": "an NVIDIA GPU (CUDA): take torch, which uses it",
        "CPU": "the CPU alone",
    }
    dialogue.hint(f"Found here: {names[here]}.")
    automatic = automatic_backend(specs).name
    choices = [Choice(value="auto", label=f"Automatic, which is {automatic} now")]
    for name, spec in sorted(specs.items()):
        state = "not installed" if missing_modules(spec.requires) else "installed"
        if state != "installed" and spec.download:
            state += f", about {extras.amount(spec.download)}"
        about = f"; {_ABOUT[name]}" if name in _ABOUT else ""
        choices.append(Choice(value=name, label=name, note=f"{state}{about}"))
    default = place.config.training.backend if place.file.exists else "auto"
    draft.backend = dialogue.choose("--backend", choices, draft.backend or default)
    draft.missing.pop("backend", None)
    spec = specs[automatic if draft.backend == "auto" else draft.backend]
    if not extras.offer(dialogue, f"The {spec.name} backend", spec.requires, spec.extra, spec.download):
        draft.missing["backend"] = (
            f"there is no backend to answer with; install one with {install_line(spec.extra)}"
        )
