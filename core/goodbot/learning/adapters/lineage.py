# SPDX-License-Identifier: Apache-2.0
"""The tree of versions: who comes from whom, where training goes on, what is kept on disk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from goodbot.store.adapters import AdapterRow

BASE = 0


def ancestors(rows: Sequence[AdapterRow], version: int) -> Iterator[AdapterRow]:
    """The version itself and those above it, the nearest first; the base model is none."""
    known = {row.version: row for row in rows}
    while version in known:
        yield known[version]
        version = known[version].parent


def head(rows: Sequence[AdapterRow], active: int) -> int:
    """The version on which the next training goes on.

    The newest one that waits to go live and comes from the active one; without any, the active one.
    So what was learnt meanwhile is learnt on, and what was rolled back is not.
    """
    for row in sorted(rows, key=lambda row: -row.version):
        if row.waits and not row.tainted and row.erased_at is None:
            line = [one.version for one in ancestors(rows, row.version)]
            if active == BASE or active in line:
                return row.version
    return active


def settled(rows: Sequence[AdapterRow], before: int, now: int) -> list[int]:
    """Which versions wait no more once the pointer has moved: those that the new one continues.

    On the way back up the lineage also those that continue the one before: a person, or the owners'
    choice, has gone behind them, and training is not to go on from there.
    """
    line = {row.version for row in ancestors(rows, now)}
    above = {BASE, *(row.version for row in ancestors(rows, before))} - {before}

    def is_left(row: AdapterRow) -> bool:
        return now in above and any(one.version == before for one in ancestors(rows, row.version))

    return [row.version for row in rows if row.waits and (row.version in line or is_left(row))]


def surplus(rows: Sequence[AdapterRow], active: int, keep: int) -> list[AdapterRow]:
    """The versions whose files may go, so that `keep` stay on disk.

    What is pinned, active or waits stays anyway; then the active one's ancestors, the nearest first,
    because they are what is gone back to; then the newest of the others, what is tainted last.
    """
    there = [row for row in rows if row.erased_at is None]
    current = {active, head(rows, active)}
    fixed = [row for row in there if row.pinned or row.waits or row.version in current]
    line = [row for row in ancestors(rows, active) if row.erased_at is None]
    others = sorted(there, key=lambda row: (bool(row.tainted), -row.version))
    order = {row.version: row for row in (*fixed, *line, *others)}
    return list(order.values())[max(keep, len({row.version for row in fixed})) :]


def children(rows: Sequence[AdapterRow]) -> dict[int, list[AdapterRow]]:
    """Parent → its children, the oldest first; a parent that is not there counts as the base."""
    known = {row.version for row in rows}
    found: dict[int, list[AdapterRow]] = {}
    for row in rows:
        found.setdefault(row.parent if row.parent in known else BASE, []).append(row)
    return found


def branches(rows: Sequence[AdapterRow]) -> Iterator[tuple[str, AdapterRow]]:
    """Every version after its parent, with the lines of the tree before it.

    A line of descent stays flush: only where a version has several children, the older ones are
    indented, so that a hundred rounds in a row are no stairs.
    """
    below = children(rows)
    todo: list[tuple[str, AdapterRow]] = [("", row) for row in reversed(below.get(BASE, []))]
    while todo:
        lead, row = todo.pop()
        yield lead, row
        own = below.get(row.version, [])
        todo += [(lead if at == 0 else f"{lead}│ ", one) for at, one in enumerate(reversed(own))]
