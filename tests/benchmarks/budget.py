# SPDX-License-Identifier: Apache-2.0
"""Rows under a clock: whoever rents a GPU by the minute has what was measured, whenever it ends."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.benchmarks.table import row


@dataclass(kw_only=True)
class Budget:
    """So many minutes (None: as long as it takes), and a directory where each row is written as it comes."""

    minutes: float | None = None
    place: Path | None = None
    """`rows.md` as it is printed, `rows.jsonl` with the columns by name."""
    clock: Callable[[], float] = time.monotonic
    _columns: tuple[str, ...] = ()
    _began: float = field(init=False)

    def __post_init__(self) -> None:
        self._began = self.clock()

    @property
    def left(self) -> float:
        """Seconds."""
        return math.inf if self.minutes is None else 60 * self.minutes - (self.clock() - self._began)

    def head(self, title: str, *columns: str) -> None:
        """Begin a table; where minutes are counted, its last column says what is left."""
        self._columns = columns if self.minutes is None else (*columns, "left, s")
        self._write(
            "rows.md", f"\n## {title}\n\n| {' | '.join(self._columns)} |\n|{'---|' * len(self._columns)}"
        )
        print(f"\n## {title}\n", flush=True)
        row(*self._columns, head=True)

    def row(self, *cells: object) -> None:
        """One row, printed and written at once; what it lacks at its end is empty."""
        left = [] if self.minutes is None else [f"{self.left:.0f}"]
        empty = len(self._columns) - len(cells) - len(left)
        whole = [*map(str, cells), *[""] * empty, *left]
        row(*whole)
        self._write("rows.md", f"| {' | '.join(whole)} |")
        self._write("rows.jsonl", json.dumps(dict(zip(self._columns, whole, strict=True))))

    def _write(self, name: str, text: str) -> None:
        if self.place is not None:
            self.place.mkdir(parents=True, exist_ok=True)
            with (self.place / name).open("a", encoding="utf-8") as file:
                file.write(f"{text}\n")
