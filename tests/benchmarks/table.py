# SPDX-License-Identifier: Apache-2.0
"""How the benchmarks print."""

from __future__ import annotations


def row(*cells: object, head: bool = False) -> None:
    """A row of a Markdown table, at once: the next one may take minutes."""
    print(f"| {' | '.join(map(str, cells))} |", flush=True)
    if head:
        print("|" + "---|" * len(cells), flush=True)
