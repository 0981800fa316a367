# SPDX-License-Identifier: Apache-2.0
"""What Linux' control groups leave us of the memory: those of a container, or of a service manager."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_NONE = 1 << 50
"""Version 1 says so many bytes where there is no limit."""


class Cgroup(NamedTuple):
    """Bytes that a group may have, and has."""

    limit: int
    used: int
    """Without the pages of files that the system would give up."""


def memory(root: Path = Path("/")) -> Iterator[Cgroup]:
    """The group that we are in and each one above it, those without a limit left out.

    `root` holds `proc` and `sys`. The tightest counts.
    """
    try:
        lines = (root / "proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2) if line.count(":") >= 2 else ("", "-", "")
        if controllers == "":
            mount, names = root / "sys/fs/cgroup", ("memory.max", "memory.current", "inactive_file")
        elif "memory" in controllers.split(","):
            mount = root / "sys/fs/cgroup/memory"
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        else:
            continue
        parts = [part for part in path.split("/") if part not in ("", ".", "..")]
        # In a container the path may be the host's: then only the mount itself is there.
        for count in range(len(parts), -1, -1):
            group = mount.joinpath(*parts[:count])
            limit, used = _number(group / names[0]), _number(group / names[1])
            if limit is not None and limit < _NONE:
                yield Cgroup(limit, max(0, (used or 0) - _stat(group, names[2])))


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text(encoding="ascii"))
    except (OSError, ValueError):  # `max`: no limit
        return None


def _stat(group: Path, name: str) -> int:
    """Pages of files that the system would give up, which count as used."""
    try:
        for line in (group / "memory.stat").read_text(encoding="ascii").splitlines():
            if line.startswith(f"{name} "):
                return int(line.split()[1])
    except (OSError, ValueError, IndexError):
        pass
    return 0
