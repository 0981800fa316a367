# SPDX-License-Identifier: Apache-2.0
"""macOS: `pmset -g batt` for the battery, `ps` for the load."""

from __future__ import annotations

import os

from goodbot.base.machine.tool import Tool


def on_battery(tool: Tool) -> bool | None:
    """Whether no mains feeds this machine; None where `pmset` does not tell."""
    first = tool("pmset", "-g", "batt").partition("\n")[0]  # Now drawing from 'AC Power'
    if "'AC Power'" in first:
        return False
    return True if "'Battery Power'" in first or "'UPS Power'" in first else None


def others_load(tool: Tool, *, pid: int | None = None, cores: int | None = None) -> float | None:
    """The share of all processor time, 0 to 1, of processes that do not descend from ours.

    The kernel's decaying average of about a minute, 100 for a whole core.
    """
    parents: dict[int, int] = {}
    used: dict[int, float] = {}
    for line in tool("ps", "-A", "-o", "pid=,ppid=,%cpu=").splitlines():
        fields = line.split()
        if len(fields) == 3:
            parents[int(fields[0])] = int(fields[1])
            used[int(fields[0])] = float(fields[2])
    if not used:
        return None
    family = {pid or os.getpid()}
    while more := {p for p, parent in parents.items() if parent in family} - family:
        family |= more
    others = sum(share for process, share in used.items() if process not in family)
    return min(1.0, others / 100 / (cores or os.cpu_count() or 1))
