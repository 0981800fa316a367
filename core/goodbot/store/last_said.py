# SPDX-License-Identifier: Apache-2.0
"""Of all that a person has said of an answer, the last words: a few seeks, however often a mind was changed.

SQLite finds the last row of a group only by reading the group. So these queries go from one group to the
next by an index, and in each to its end. Their expressions are those of the indexes (migration 14). A group
is one value there: of several columns, SQLite would read all that is equal to come to what is greater.
"""

from __future__ import annotations

from goodbot.store import people, rollback_window


def _last(index: str, group: str, place: str, where: str = "TRUE", counts: str = "TRUE") -> str:
    """Tables for a WITH RECURSIVE: `persons`, and `last`, the last event in each group of each of them.

    `where`: of events in the index; `counts`: of those that may be the last.
    """
    rows = f"SELECT {{0}} FROM events e INDEXED BY {index} WHERE e.turn = :turn AND {where}"  # noqa: S608
    following = f"{rows.format(group)} AND e.rater = s.rater AND {group} > s.name ORDER BY {group} LIMIT 1"
    newest = f"{rows.format('e.seq')} AND e.rater = s.rater AND {group} = s.name AND {counts}"
    return (
        f"persons (rater) AS ({people.ACCOUNTS.replace('UNION ALL', 'UNION')}), groups (rater, name) AS"  # noqa: S608
        f" (SELECT rater, '' FROM persons UNION ALL SELECT s.rater, ({following}) FROM groups s"
        "  WHERE s.name IS NOT NULL), last AS (SELECT n.* FROM groups s JOIN events n ON n.seq ="
        f" ({newest} ORDER BY {place} DESC LIMIT 1))"
    )


_PLACE = "printf('%015d', e.time_ms) || e.tiebreak"
_OURS = "(substr(e.tiebreak, 1, 1) = '~' AND NOT instr(e.tiebreak, '+'))"

_BY_CLOCK = _last("events_placed", f"quote(e.connector) || quote(e.account) || {_OURS}", _PLACE)
BY_CLOCK = f"WITH RECURSIVE {_BY_CLOCK} SELECT time_ms, tiebreak, connector, account FROM last"  # noqa: S608
"""The last by each clock: of each account by its platform's, and by ours."""

BY_SOURCE = _last(
    "events_said",
    "quote(e.connector) || quote(e.account) || quote(e.kind) || quote(e.source)",
    f"{_PLACE} || char(1) || e.event_id",
    where="(e.value IS NOT NULL OR (e.kind = 'retract' AND e.retracts = ''))",
    counts=f"NOT ({rollback_window.COVERED})",
)
"""Tables for a WITH RECURSIVE: `last`, the last word of each source."""
KILLED = (
    "EXISTS (SELECT 1 FROM events r WHERE r.turn = :turn AND (r.connector, r.account, r.retracts)"
    " = (last.connector, last.account, last.event_id) AND r.retracts <> '' AND r.rater IN (SELECT"
    " rater FROM persons))"
)
"""SQL: whether the same person took this `last` word back by name."""
