# SPDX-License-Identifier: Apache-2.0
"""What of a state directory travels in a backup: what is named for it, and nothing else.

A connector names files and values of its own (`ConnectorSpec.backup_files`, `backup_values`). All else
is bound to this machine or lets somebody in: programs' tokens, what their settings were before us, which
models were downloaded here. It stays out of a backup, and in its place when one is restored.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path

from goodbot.api.connector import ConnectorSpec
from goodbot.base.sealed import KEY
from goodbot.config.secrets import FILE as SECRETS
from goodbot.inference.models.fetched import FILE as FETCHED

CONNECTORS = "connectors"
_STAYS = (SECRETS, FETCHED, KEY)


class Travelling:
    """What the connectors that are installed have named."""

    def __init__(self, specs: Mapping[str, ConnectorSpec]) -> None:
        self._files = {f"{CONNECTORS}/{s.name}/{file}" for s in specs.values() for file in s.backup_files}
        self.values: dict[str, Sequence[str]] = {s.name: s.backup_values for s in specs.values()}
        """Patterns of the values' keys, by connector."""

    def takes(self, name: str) -> bool:
        """Whether a file of that name in a backup is one that travels; older backups hold others."""
        return name in self._files or (not name.startswith(f"{CONNECTORS}/") and name != FETCHED)

    def files(self, home: Path) -> dict[str, Path]:
        """The connectors' named files that are there, by name."""
        named = {name: home / name for name in sorted(self._files)}
        return {name: path for name, path in named.items() if _is_file(path)}


def keep(home: Path, restored: Path) -> None:
    """What does not travel goes on as it is here: copies of it join `restored`. Raises OSError.

    What a backup has brought is not replaced.
    """
    for name in _STAYS:
        if (home / name).exists():
            shutil.copy2(home / name, restored / name, follow_symlinks=False)
    for parent, folders, names in os.walk(home / CONNECTORS):
        for name in (*folders, *names):
            path = Path(parent, name)
            target = restored / path.relative_to(home)
            if path.is_symlink() or _is_file(path):
                if not os.path.lexists(target):
                    shutil.copy2(path, target, follow_symlinks=False)
            elif path.is_dir():
                target.mkdir(mode=0o700, parents=True, exist_ok=True)


def _is_file(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False
