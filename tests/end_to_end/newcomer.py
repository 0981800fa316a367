# SPDX-License-Identifier: Apache-2.0
"""The machine of somebody who installs goodbot: an empty home, and packages in a local folder.

Only the network is missing: Python, venv, pip and every package are real. What pip would download is a
folder of wheels (`PIP_FIND_LINKS`), with what is large linked from the environment of the tests.
"""

from __future__ import annotations

import os
import shutil
import sys
import zipfile
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

from tests.architecture.source import ROOT

LEFT_OUT = ("goodbot", "telegram", "python_telegram_bot", "mlx_lm", "peft", "pytest")
"""What a newcomer's environment does not have at first; pip brings some of it."""
WHEELS = (
    "python-telegram-bot",
    "mlx-lm",
    "peft",
    "hatchling",
    "packaging",
    "pathspec",
    "pluggy",
    "tomlkit",
    "trove-classifiers",  # what builds goodbot
)


def shop(folder: Path, names: Iterable[str] = WHEELS) -> Path:
    """A folder with the wheels that an installer will ask for. goodbot itself is in none: nobody sells it."""
    folder.mkdir()
    for name in names:
        _pack(metadata.distribution(name), folder)
    return folder


def clone(folder: Path) -> Path:
    """The source as somebody has it who has cloned it."""
    for name in ("core", "connectors", "training"):
        shutil.copytree(
            ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info")
        )
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder / name)
    return folder


def _pack(installed: metadata.Distribution, folder: Path) -> None:
    """An installed pure-Python distribution as the wheel that it came from."""
    stem = installed.name.replace("-", "_").lower()
    left = ("INSTALLER", "REQUESTED", "direct_url.json")  # what the installer has added
    files = [
        file
        for file in installed.files or ()
        if file.parts[0] != ".." and "__pycache__" not in file.parts and file.name not in left
    ]
    with zipfile.ZipFile(folder / f"{stem}-{installed.version}-py3-none-any.whl", "w") as wheel:
        for file in files:
            if file.name != "RECORD":
                wheel.write(str(file.locate()), str(file))
                continue
            # Of what is in the wheel alone: here it names scripts and compiled files, too.
            sums = ((one, f"{one.hash.mode}={one.hash.value}" if one.hash else "", one.size) for one in files)
            rows = "".join(f"{one},{sum_},{'' if size is None else size}\n" for one, sum_, size in sums)
            wheel.writestr(str(file), rows)


def stock(environment: Path) -> None:
    """Link the large packages into a new environment, as if a network had brought them."""
    [site] = environment.glob("lib/python*/site-packages")
    [here] = {Path(str(metadata.distribution("pluggy").locate_file("")))}
    for entry in here.iterdir():
        name = entry.name.lower()
        if not name.startswith(LEFT_OUT) and not (site / entry.name).exists():
            (site / entry.name).symlink_to(entry)


def surroundings(home: Path, wheels: Path) -> dict[str, str]:
    """The environment variables of the newcomer's shell."""
    return {
        "HOME": str(home),
        "GOODBOT_HOME": str(home / ".goodbot"),
        "PS1": "ada$ ",
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(wheels),
        "PIP_PROGRESS_BAR": "off",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_CACHE_DIR": str(home / ".cache" / "pip"),
        "BASH_SILENCE_DEPRECATION_WARNING": "1",
    }
