# SPDX-License-Identifier: Apache-2.0
"""When the plugin was heard of: a small file in the connector's directory that `doctor` reads."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

from goodbot.base.clock import Clock, ago

_FILE = "seen.json"
_SECONDS = 60.0


class LastSeen:
    """Notes the last call and the last captured answer, at most once a minute each."""

    def __init__(self, state_dir: Path, clock: Clock) -> None:
        self._dir, self._clock = state_dir, clock
        self._loaded, self._captured = read(state_dir)

    def note(self, *, captured: bool = False) -> None:
        """The plugin has called just now. What cannot be written is not known to `doctor`."""
        now = self._clock.now()
        old = ago(self._loaded, now) >= _SECONDS
        if captured and ago(self._captured, now) >= _SECONDS:
            self._captured, old = now, True
        if not old:
            return
        self._loaded = now
        partial = self._dir / f"{_FILE}.new"
        with contextlib.suppress(OSError):
            partial.write_text(json.dumps([self._loaded, self._captured]), encoding="utf-8")
            partial.replace(self._dir / _FILE)


def read(state_dir: Path) -> tuple[float, float]:
    """Seconds since the epoch of the last call and of the last captured answer; 0 for never."""
    try:
        loaded, captured = json.loads((state_dir / _FILE).read_text(encoding="utf-8"))
        return float(loaded), float(captured)
    except (OSError, ValueError, TypeError):
        return 0.0, 0.0
