# SPDX-License-Identifier: Apache-2.0
"""Linux: `/sys/class/power_supply` and `/proc`, as the kernel documents them (proc(5), sysfs-class-power)."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path


def on_battery(sys: Path = Path("/sys")) -> bool | None:
    """Whether no mains feeds this machine; None where there is no battery (or UPS) of its own.

    A wireless mouse's battery has the scope `Device` and is not the machine's.
    """
    batteries: list[str] = []
    for supply in sorted((sys / "class/power_supply").glob("*")):
        kind = _word(supply / "type")
        if _word(supply / "scope") == "Device":
            continue
        if kind in ("Battery", "UPS"):
            batteries.append(_word(supply / "status"))
        elif kind and _word(supply / "online") not in ("", "0"):  # mains, USB, wireless
            return False
    return "Discharging" in batteries if batteries else None


def _word(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Sample:
    """Clock ticks since the machine started, of all processors together."""

    total: int
    busy: int
    ours: int


class Load:
    """The processor time between two readings that went to others.

    `(Δbusy − Δours) / Δtotal`, with "ours" all of our process and its descendants. Unlike the load
    average it counts no waiting, and it knows whose the time was.
    """

    def __init__(self, *, proc: Path = Path("/proc"), pid: int | None = None) -> None:
        self._proc = proc
        self._pid = pid or os.getpid()
        self._before = self._sample()
        self._share: float | None = None

    def others(self) -> float | None:
        """Their share, 0 to 1, since the last time; None before there is a second of it."""
        now, before = self._sample(), self._before
        if now is None or before is None:
            self._before = now
            return None
        # Below a second (100 ticks) the difference of two counters says little.
        if (total := now.total - before.total) >= 100:
            others = (now.busy - before.busy) - (now.ours - before.ours)
            self._share = min(1.0, max(0.0, others / total))
            self._before = now
        return self._share

    def family(self) -> dict[int, int]:
        """Our process and its living descendants: pid → ticks, with those of ended children."""
        parents: dict[int, int] = {}
        ticks: dict[int, int] = {}
        for entry in self._proc.glob("[0-9]*/stat"):
            # The second field is a name in brackets, which may itself hold brackets and spaces.
            fields = _word(entry).rpartition(")")[2].split()
            if len(fields) > 14:
                pid = int(entry.parent.name)
                parents[pid] = int(fields[1])
                ticks[pid] = sum(int(field) for field in fields[11:15])  # utime … cstime
        family = {self._pid}
        while more := {p for p, parent in parents.items() if parent in family} - family:
            family |= more
        return {pid: ticks.get(pid, 0) for pid in family}

    def _sample(self) -> _Sample | None:
        try:
            line = (self._proc / "stat").read_text(encoding="utf-8").partition("\n")[0]
            user, nice, system, idle, iowait, irq, softirq, steal = map(int, line.split()[1:9])
        except (OSError, ValueError):
            return None
        busy = user + nice + system + irq + softirq
        return _Sample(total=busy + idle + iowait + steal, busy=busy, ours=sum(self.family().values()))
