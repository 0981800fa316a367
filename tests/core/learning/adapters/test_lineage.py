# SPDX-License-Identifier: Apache-2.0
"""The tree of versions: where training goes on, what may go from the disk, how it is drawn."""

from __future__ import annotations

from typing import Any

from goodbot.learning.adapters.lineage import branches, head, settled, surplus
from goodbot.store.adapters import PINNED, UNSERVED, AdapterRow
from hypothesis import given, settings
from hypothesis import strategies as st


def row(version: int, parent: int, **fields: Any) -> AdapterRow:
    given_: dict[str, Any] = {
        "version": version,
        "parent": parent,
        "run": version,
        "directory": f"v{version}",
        "sha256": "",
        "model": "m",
        "tainted": "",
        "baseline": {},
        "metrics": {},
        "created_at": 0.0,
    }
    return AdapterRow(**given_ | fields)


def line(count: int) -> list[AdapterRow]:
    return [row(version, version - 1) for version in range(1, count + 1)]


def gone(rows: list[AdapterRow], active: int, keep: int) -> set[int]:
    return {one.version for one in surplus(rows, active, keep)}


def test_of_a_long_line_the_newest_stay() -> None:
    assert gone(line(30), active=30, keep=20) == set(range(1, 11))


def test_what_is_gone_back_to_stays_before_newer_versions_beside_it() -> None:
    """v3 was rolled back to: it and its ancestors stay, then the newest of the others."""
    assert gone(line(8), active=3, keep=5) == {4, 5, 6}


def test_pinned_active_and_waiting_stay_however_few_are_kept() -> None:
    rows = [*line(5), row(6, 5, waits=PINNED)]
    rows[0] = row(1, 0, pinned=True)
    assert gone(rows, active=2, keep=2) == {3, 4, 5}


def test_the_tainted_go_first() -> None:
    rows = [row(1, 0), row(2, 0), row(3, 0, tainted="a rating was taken back"), row(4, 0)]
    assert gone(rows, active=1, keep=3) == {3}


def test_what_is_gone_already_is_not_counted() -> None:
    rows = [row(1, 0, erased_at=1.0), *(row(v, v - 1) for v in (2, 3, 4))]
    assert gone(rows, active=4, keep=3) == set()


trees = st.lists(st.integers(0, 30), max_size=30).map(
    lambda picks: [row(at + 1, pick % (at + 1)) for at, pick in enumerate(picks)]
)


@settings(max_examples=60)
@given(trees, st.integers(0, 30), st.integers(2, 8), st.data())
def test_never_too_few_and_never_the_active_one(
    rows: list[AdapterRow], active: int, keep: int, data: st.DataObject
) -> None:
    active = active % (len(rows) + 1)
    pinned = data.draw(st.sets(st.integers(1, 30), max_size=3))
    rows = [row(one.version, one.parent, pinned=one.version in pinned) for one in rows]
    went = gone(rows, active, keep)
    assert active not in went
    assert not went & pinned
    assert len(rows) - len(went) >= min(len(rows), keep)
    assert sorted(one.version for _, one in branches(rows)) == [one.version for one in rows]


def test_training_goes_on_from_what_waits() -> None:
    rows = line(3)
    assert head(rows, 3) == 3
    rows += [row(4, 3, waits=PINNED), row(5, 4, waits=PINNED)]
    assert head(rows, 3) == 5
    rows[4] = row(5, 4, waits=PINNED, tainted="taken back")
    assert head(rows, 3) == 4
    assert head(rows, 2) == 4, "its line leads over v2 as well"
    assert head(rows, 0) == 4


def test_not_from_what_was_rolled_back_nor_from_another_branch() -> None:
    assert head(line(3), 1) == 1
    assert head([*line(3), row(4, 3, waits=PINNED), row(5, 0)], 5) == 5


def test_who_goes_back_leaves_behind_what_continued_it() -> None:
    rows = [*line(2), row(3, 2, waits=UNSERVED), row(4, 3, waits=UNSERVED)]
    assert settled(rows, before=2, now=1) == [3, 4]
    assert settled(rows, before=2, now=0) == [3, 4]
    beside = [row(1, 0), row(2, 0), row(3, 2, waits=UNSERVED)]
    assert settled(beside, before=1, now=0) == [], "another branch was not gone behind"
    assert settled(rows, before=2, now=2) == []


def test_who_goes_forward_leaves_no_ancestor_waiting() -> None:
    rows = [*line(2), row(3, 2, waits=UNSERVED), row(4, 3), row(5, 4, waits=PINNED)]
    assert settled(rows, before=2, now=4) == [3]


def test_a_hundred_rounds_in_a_row_are_no_stairs() -> None:
    assert {lead for lead, _ in branches(line(100))} == {""}


def test_a_branch_stands_under_its_parent() -> None:
    rows = [row(1, 0), row(2, 1), row(3, 2), row(4, 1), row(5, 4)]
    assert [(lead, one.version) for lead, one in branches(rows)] == [
        ("", 1),
        ("│ ", 2),
        ("│ ", 3),
        ("", 4),
        ("", 5),
    ]
