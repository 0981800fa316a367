# SPDX-License-Identifier: Apache-2.0
"""Where a rating stands among those that its rater gave by other clocks: they are never compared.

Times of one connector account are its platform's, and a late one is put where it belongs. Between
two clocks the order in which they came in decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import aiosqlite

from goodbot.api.events import OrderKey, PressEvent, RatingEvent
from goodbot.store import last_said, people
from goodbot.store.query import fetch, value

_OURS, _AFTER, _HEARD = "~", "+", " @"
"""Marks in a stored tiebreak: of our own time; of what comes after that, with its own time; of a press, with
the last event before it."""
_LAST = f"substr({{0}}.tiebreak, instr({{0}}.tiebreak || '{_HEARD}', '{_HEARD}') + {len(_HEARD)})"
HEARD = f"CAST(nullif({_LAST}, '') AS INTEGER)"
"""SQL: of a press, the last event that came before it; NULL where that was not noted."""
OWN = f"(substr({{0}}.tiebreak, 1, 1) <> '{_OURS}' AND NOT instr({{0}}.tiebreak, '{_AFTER}'))"
"""SQL: it stands by its own platform's time."""
_LONGEST = 200
"""Of a tiebreak that others follow: else two clocks that both stand would make it ever longer."""
_UNKNOWN = 2**62
"""After all events: a press of a time when none was noted."""

_OF_MESSAGE = (
    "SELECT time_ms, tiebreak, connector, account FROM events e"  # noqa: S608
    f" WHERE e.rater IN ({people.ACCOUNTS})"
    " AND e.turn IS NULL AND (e.connector, e.account, e.channel, e.message)"
    " = (:connector, :account, :channel, :message)"
)
"""All that is said there, of which the last by each clock counts, as of `last_said.BY_CLOCK`."""
_EACH = (
    "SELECT time_ms, tiebreak, connector, account, seq FROM events e"  # noqa: S608
    f" WHERE e.rater IN ({people.ACCOUNTS}) AND e.turn = :turn ORDER BY seq"
)
_Clock = tuple[str, str]
Row = tuple[int, str, str, str]
"""As it is stored: time_ms, tiebreak, connector, account."""
_MACHINE: _Clock = ("", "")
"""This machine's clock, or a page's: no connector account has that name."""


async def placed(
    db: aiosqlite.Connection, event: RatingEvent, turn: str | None, rater: str, *, heard: bool = True
) -> RatingEvent:
    """The event, after all that its person has said of the answer by another clock.

    Of an answer that is not recorded yet, its message tells what was said of it. Where nobody was
    `heard`, nothing is looked for.
    """
    values = {
        "turn": turn,
        "person": rater,
        "connector": event.user.connector,
        "account": event.user.account,
        "channel": event.channel.id,
        "message": event.message_id,
    }
    rows = await fetch(db, last_said.BY_CLOCK if turn else _OF_MESSAGE, values) if heard else []
    newest: dict[_Clock, OrderKey] = {}
    for time_ms, tiebreak, *place in (row[:4] for row in rows):  # ours may have several: it is no account's
        clock, order = _clock(tiebreak, *place), OrderKey(time_ms, tiebreak)
        newest[clock] = max(order, newest.get(clock, order))
    clock = _MACHINE if event.order.ours else (event.user.connector, event.user.account)
    return replace(event, order=_after(newest, clock, marked(event.order)))


def marked(order: OrderKey) -> OrderKey:
    """As it is stored: our own time with a mark."""
    return OrderKey(order.time_ms, _OURS + order.tiebreak.replace(_AFTER, "")) if order.ours else order


async def numbered(db: aiosqlite.Connection, press: PressEvent) -> PressEvent:
    """The press, with the last event before it: what came after that came after the press."""
    if _HEARD in press.order.tiebreak:
        return press
    last = await value(db, "SELECT coalesce(max(seq), 0) FROM events")
    order = press.order._replace(tiebreak=f"{press.order.tiebreak}{_HEARD}{last}")
    return replace(press, order=order)


def asked(order: OrderKey) -> tuple[OrderKey | None, int]:
    """Of a press as it is stored: its time, None for ours, and the last event that came before it."""
    tiebreak, noted, last = order.tiebreak.rpartition(_HEARD)
    plain = OrderKey(order.time_ms, tiebreak if noted else order.tiebreak)
    heard = int(last) if noted and last.isdecimal() else _UNKNOWN
    return None if plain.tiebreak.startswith(_OURS) else plain, heard


def own(order: OrderKey) -> OrderKey | None:
    """The time of an event as it is stored by its platform's clock; None for ours."""
    return _own(order) if _clock(order.tiebreak, "platform", "") != _MACHINE else None


async def anew(db: aiosqlite.Connection, turn: str, rater: str) -> None:
    """Place all that one person said of an answer again, as it came in.

    For what was not known to be one person's, or of one answer, when it came: there nobody compared.
    """
    rows = await fetch(db, _EACH, {"turn": turn, "person": rater})
    moved = [
        (order.time_ms, order.tiebreak, row[4])
        for row, order in zip(rows, in_order(row[:4] for row in rows), strict=True)
        if order != (row[0], row[1], False)
    ]
    await db.executemany("UPDATE events SET time_ms = ?, tiebreak = ? WHERE seq = ?", moved)


def in_order(rows: Iterable[Row]) -> list[OrderKey]:
    """Where each of these events of one person stands among them; they are given as they came in."""
    newest: dict[_Clock, OrderKey] = {}
    stand: list[OrderKey] = []
    for time_ms, tiebreak, *place in rows:
        clock = _clock(tiebreak, *place)
        stand.append(order := _after(newest, clock, _own(OrderKey(time_ms, tiebreak))))
        newest[clock] = max(order, newest.get(clock, order))
    return stand


def _own(order: OrderKey) -> OrderKey:
    """By its own clock, also where it stands after another one's."""
    at, _, tiebreak = order.tiebreak.rpartition(_AFTER)[2].partition(" ")
    return OrderKey(int(at), tiebreak) if _AFTER in order.tiebreak and at.isdecimal() else order


def _clock(tiebreak: str, connector: str, account: str) -> _Clock:
    return _MACHINE if tiebreak.startswith(_OURS) and _AFTER not in tiebreak else (connector, account)


def _after(newest: Mapping[_Clock, OrderKey], clock: _Clock, own: OrderKey) -> OrderKey:
    """Where it stands: by its own time, if that is after the `newest` by each other clock.

    Our own clock may have been set back: what comes by it is after all that is there. Where a platform's
    stands, what comes later is later.
    """
    if clock == _MACHINE:
        latest = max((order.time_ms for order in newest.values()), default=-1)
        return OrderKey(max(own.time_ms, latest + 1), own.tiebreak)
    last = max((order for other, order in newest.items() if other != clock), default=OrderKey(-1))
    if (before := newest.get(clock)) is not None and _own(before) == own:
        last = max(last, before)
    if len(last.tiebreak) > _LONGEST:
        last = OrderKey(last.time_ms + 1, _OURS)
    if last < own:
        return own
    behind = f"{own.time_ms:015d} {own.tiebreak.replace(_AFTER, '')}"
    return OrderKey(last.time_ms, f"{last.tiebreak or _OURS}{_AFTER}{behind}")
