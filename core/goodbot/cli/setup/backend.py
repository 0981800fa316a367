# SPDX-License-Identifier: Apache-2.0
"""What answers and trains here: the device that is found, and the backend that fits it."""

from __future__ import annotations

import platform
import shutil
import sys
from pathlib import Path

from goodbot.api.backend import BackendSpec
from goodbot.api.registry import automatic_backend
from goodbot.api.texts import pauses
from goodbot.base.installed import missing_modules
from goodbot.base.packages import install_line
from goodbot.cli.setup import extras
from goodbot.cli.setup.dialogue import Choice, Dialogue
from goodbot.cli.setup.draft import Draft, StateFound

_ABOUT = {"mlx": "setup_about_mlx", "torch": "setup_about_torch"}
_FOUND = {"Metal": "setup_found_metal", "CUDA": "setup_found_cuda", "CPU": "setup_found_cpu"}


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
    dialogue.hint(dialogue.phrase(_FOUND[device()]))
    automatic = automatic_backend(specs).name
    choices = [Choice(value="auto", label=dialogue.phrase("setup_automatic", name=automatic))]
    default = place.config.training.backend if place.file.exists else "auto"
    for name, spec in sorted(specs.items()):
        if spec.remote and name not in (default, draft.backend):
            continue  # an owner writes down where people's words may go
        about = dialogue.phrase(_ABOUT[name]) if name in _ABOUT else ""
        choices.append(
            Choice(value=name, label=name, note=pauses(dialogue.language, _state(dialogue, spec), about))
        )
    draft.backend = dialogue.choose("--backend", choices, draft.backend or default)
    draft.missing.pop("backend", None)
    spec = specs[automatic if draft.backend == "auto" else draft.backend]
    what = dialogue.phrase("setup_backend", name=spec.name)
    if not extras.offer(dialogue, what, spec.requires, spec.extra, spec.download):
        draft.missing["backend"] = dialogue.phrase("setup_no_backend", line=install_line(spec.extra))


def _state(dialogue: Dialogue, spec: BackendSpec) -> str:
    """Whether it is there, or how much it takes."""
    if not missing_modules(spec.requires):
        return dialogue.phrase("setup_installed_here")
    if not spec.download:
        return dialogue.phrase("setup_not_here")
    return dialogue.phrase("setup_not_here_size", size=extras.amount(spec.download))
