"""What answers and trains here: the device that is found, and the backend that fits it."""

from __future__ import annotations

import platform
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from goodbot.backend import BackendSpec
from goodbot.errors import install_line
from goodbot.plugins import choose_backend, missing_modules
from goodbot.wizard import extras
from goodbot.wizard.dialogue import Choice, Dialogue
from goodbot.wizard.draft import Draft, Place

_FOR_DEVICE = {"Metal": "mlx", "CUDA": "torch", "CPU": "torch"}
_ABOUT = {
    "mlx": "for Apple GPUs; it runs on Linux too, slowly; about 60 MB",
    "torch": "for NVIDIA GPUs (CUDA) and processors; on Linux 2 GB and more",
}


def device() -> str:
    """`Metal`, `CUDA` or `CPU`, found without importing a framework."""
    if sys.platform == "darwin" and platform.machine() == "arm64":
        return "Metal"
    if Path("/proc/driver/nvidia/version").exists() or shutil.which("nvidia-smi"):
        return "CUDA"
    return "CPU"


def ask_backend(dialogue: Dialogue, place: Place, draft: Draft) -> None:
    """Which backend; its packages are installed if the person agrees."""
    specs = place.plugins.backends()
    here = device()
    names = {
        "Metal": "an Apple GPU (Metal)",
        "CUDA": "an NVIDIA GPU (CUDA)",
        "CPU": "the CPU alone",
    }
    dialogue.hint(f"Found here: {names[here]}.")
    automatic = _automatic(specs, here)
    choices = [Choice(value="auto", label=f"Automatic, which is {automatic} now")]
    for name, spec in sorted(specs.items()):
        state = "not installed" if missing_modules(spec.requires) else "installed"
        about = f"; {_ABOUT[name]}" if name in _ABOUT else ""
        choices.append(Choice(value=name, label=name, note=f"{state}{about}"))
    fitting = _FOR_DEVICE[here]
    other = fitting in specs and not missing_modules(specs[fitting].requires)
    default = fitting if other and fitting != automatic else "auto"
    if place.file.exists:
        default = place.config.training.backend
    draft.backend = dialogue.choose("--backend", choices, draft.backend or default)
    draft.missing.pop("backend", None)
    spec = specs[automatic if draft.backend == "auto" else draft.backend]
    size = _ABOUT.get(spec.name, "").rpartition("; ")[2]
    if not extras.offer(dialogue, f"The {spec.name} backend", spec.requires, spec.extra, size):
        draft.missing["backend"] = (
            f"there is no backend to answer with; install one with {install_line(spec.extra)}"
        )


def _automatic(specs: Mapping[str, BackendSpec], here: str) -> str:
    """What `auto` will be: the best one that is installed, else the one to install."""
    if any(not missing_modules(spec.requires) for spec in specs.values()):
        return choose_backend(specs, "auto").name
    return _FOR_DEVICE[here] if _FOR_DEVICE[here] in specs else next(iter(sorted(specs)))
