# SPDX-License-Identifier: Apache-2.0
"""Rule 3: a label depends on the set of events alone, through the fold and through the store."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from goodbot.api.events import OrderKey, Outcome, RatingEvent, RatingKind, Receipt
from goodbot.api.labels import Label, LedgerEvent, Opinion, fold, is_stars, star_value
from goodbot.store import Store, ledger
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.builders import add_turn, rate, rebuild, retract, rows

R = RatingKind


def event(id_: str, at: int, kind: RatingKind = R.RATE, **fields: object) -> LedgerEvent:
    fields.setdefault("stars", is_stars(str(fields.get("source", ""))))
    return LedgerEvent(event_id=id_, order=OrderKey(at), kind=kind, **fields)  # type: ignore[arg-type]


UP = event("up", 1, source="reaction:👍", value=1.0)
DOWN = event("down", 2, source="reaction:👎", value=-1.0)
UP_GONE = event("up-gone", 3, R.RETRACT, source="reaction:👍")
DOWN_GONE = event("down-gone", 3, R.RETRACT, source="reaction:👎")
UNDO = event("undo", 4, R.RETRACT)


def value(*events: LedgerEvent) -> float | None:
    label = fold(events)
    return label.value if label else None


def test_nothing_is_no_label() -> None:
    assert fold([]) is None
    assert value(event("c", 1, R.COMMENT), event("j", 1, R.JUDGE, value=1.0)) is None


def test_the_latest_rating_counts_and_taking_it_away_shows_the_one_before() -> None:
    assert value(UP) == 1.0
    assert value(UP, DOWN) == -1.0
    assert value(UP, DOWN, DOWN_GONE) == 1.0
    assert value(UP, DOWN, UP_GONE) == -1.0
    assert value(UP, DOWN, UP_GONE, DOWN_GONE) is None


def test_a_removed_reaction_shows_an_older_button_again() -> None:
    button = event("b", 0, source="button", value=-1.0)
    assert value(button, UP) == 1.0
    assert value(button, UP, UP_GONE) == -1.0


def test_one_source_holds_one_rating() -> None:
    """A second press of a button replaces the first: taking the second back leaves nothing."""
    first = event("1", 1, source="button", value=1.0)
    second = event("2", 2, source="button", value=-1.0)
    assert value(first, second) == -1.0
    assert value(first, second, event("3", 3, R.RETRACT, retracts="2")) is None
    assert value(first, second, event("3", 3, R.RETRACT, retracts="1")) == -1.0


def test_good_bad_undo_is_nothing_and_then_good_again() -> None:
    good = event("1", 1, source="command", value=1.0)
    bad = event("2", 2, source="command", value=-1.0)
    assert value(good, bad, UNDO) is None
    assert value(good, bad, UNDO, event("5", 5, source="command", value=1.0)) == 1.0


def test_an_undo_sweeps_only_what_came_before_it() -> None:
    late = event("late", 9, source="reaction:👍", value=1.0)
    assert value(late, UNDO) == 1.0
    assert value(late, event("x", 3, R.RETRACT, source="reaction:👍")) == 1.0
    assert value(late, event("x", 3, R.RETRACT, retracts="late")) is None


def test_at_one_moment_the_platforms_sequence_decides() -> None:
    a = LedgerEvent(event_id="z", order=OrderKey(1, "0001"), kind=R.RATE, source="s", value=1.0)
    b = LedgerEvent(event_id="a", order=OrderKey(1, "0002"), kind=R.RATE, source="s", value=-1.0)
    assert fold([a, b]) == fold([b, a]) == Label(value=-1.0, event_id="a")


FOUR = event("four", 3, source="stars", value=star_value(4))
FOUR_GONE = event("four-gone", 5, R.RETRACT, source="stars")


def test_thumb_and_stars_stand_side_by_side_whichever_came_first() -> None:
    for thumb in (UP, replace(UP, order=OrderKey(9))):
        label = fold([thumb, FOUR])
        assert label is not None
        assert (label.value, label.stars) == (1.0, 0.5)
        assert label.event_id == max(thumb, FOUR, key=lambda e: e.order).event_id


def test_taking_one_of_the_two_back_leaves_the_other() -> None:
    assert fold([UP, FOUR, FOUR_GONE]) == fold([UP])
    assert fold([UP, FOUR, UP_GONE]) == fold([FOUR]) == Label(value=0.5, event_id="four")
    assert fold([UP, FOUR, event("x", 5, R.RETRACT, retracts="four")]) == fold([UP])
    assert fold([UP, FOUR, event("x", 5, R.RETRACT, retracts="up")]) == fold([FOUR])
    assert fold([UP, FOUR, event("x", 5, R.RETRACT)]) is None, "undo takes all back"


def test_a_later_thumb_replaces_the_thumb_and_later_stars_the_stars() -> None:
    two = event("two", 6, source="stars:button", value=star_value(2))
    label = fold([UP, FOUR, two, DOWN])
    assert label == Label(value=-1.0, event_id="two", stars=-0.5)


def test_stars_are_told_by_their_source() -> None:
    assert [is_stars(s) for s in ("stars", "stars:modal", "reaction:⭐", "starsky", "")] == [
        True,
        True,
        False,
        False,
        False,
    ]
    assert [star_value(n) for n in (1, 2, 3, 4, 5)] == [-1.0, -0.5, 0.0, 0.5, 1.0]


@st.composite
def histories(draw: st.DrawFn) -> list[LedgerEvent]:
    """Up to nine events of one rater, with equal times and all three kinds of undo."""
    found: list[LedgerEvent] = []
    for number in range(draw(st.integers(1, 9))):
        at = draw(st.integers(0, 4))
        source = draw(st.sampled_from(["reaction:👍", "reaction:👎", "button", "stars", "stars:b"]))
        what = draw(st.sampled_from(["rate", "rate", "outcome", "source", "event", "event", "all"]))
        id_ = f"e{number}"
        if what == "rate":
            given_ = [-1.0, -0.5, 0.0, 0.5, 1.0] if is_stars(source) else [1.0, -1.0]
            value = -1.0 if source.endswith("👎") else draw(st.sampled_from(given_))
            found.append(event(id_, at, source=source, value=value))
        elif what == "outcome":
            value = draw(st.sampled_from([-1.0, 0.25, 1.0]))
            found.append(event(id_, at, R.OUTCOME, source=source, value=value, stars=False))
        elif what == "source":
            found.append(event(id_, at, R.RETRACT, source=source))
        elif what == "event":
            target = f"e{draw(st.integers(max(0, number - 3), number + 1))}"
            found.append(event(id_, at, R.RETRACT, retracts=target))
        else:
            found.append(event(id_, at, R.RETRACT))
    return found


@given(histories(), st.randoms(use_true_random=False))
def test_neither_order_nor_repetition_matters(history: list[LedgerEvent], chance: random.Random) -> None:
    expected = fold(history)
    shuffled = history + chance.choices(history, k=len(history))
    chance.shuffle(shuffled)
    assert fold(shuffled) == expected


@given(histories())
def test_what_counts_is_alive(history: list[LedgerEvent]) -> None:
    """Said again in other words than the fold's own, for every winner."""
    label = fold(history)
    if label is None:
        return
    winner = next(e for e in history if e.event_id == label.event_id)
    assert winner.kind in (R.RATE, R.OUTCOME)
    assert not any(e.retracts == winner.event_id for e in history)
    for e in history:
        if e.kind is R.RETRACT and not e.retracts and e.source in ("", winner.source):
            assert (e.order, e.event_id) < (winner.order, winner.event_id)


@given(histories())
def test_thumbs_and_stars_do_not_disturb_one_another(history: list[LedgerEvent]) -> None:
    label = fold(history)
    undone = [e for e in history if e.kind is R.RETRACT]
    measured = fold([e for e in history if e.kind is R.OUTCOME] + undone)
    history = [e for e in history if e.kind is not R.OUTCOME]
    thumb = fold([e for e in history if not e.stars] + undone)
    stars = fold([e for e in history if e.stars] + undone)
    if thumb and stars:
        assert label is not None
        assert (label.value, label.stars) == (thumb.value, stars.value)
    else:
        assert label == (thumb or stars or measured)


# -- through the store


def stored(e: LedgerEvent, turn: str) -> RatingEvent:
    """As a connector tells it. A retraction of one event names no message, as in Matrix.

    Equal times are told apart, as platforms do: where they are not, what came last is last.
    """
    common = {"source": e.source, "kind": e.kind, "retracts": e.retracts}
    if e.retracts:
        common |= {"retracts": f"{turn}-{e.retracts}", "message_id": ""}
    made = rate(f"{turn}-{e.event_id}", e.order.time_ms, e.value, turn, **common)
    return replace(made, order=e.order._replace(tiebreak=e.event_id))


async def take(store: Store, events: Sequence[RatingEvent]) -> None:
    async def operation(db: object, e: RatingEvent) -> None:
        found = await ledger.find(db, e)  # type: ignore[arg-type]
        if found.receipt is None:
            receipt = Receipt(event_id=e.event_id, outcome=Outcome.ACCEPTED)
            await ledger.insert(  # type: ignore[arg-type]
                db, e, found.turn, "loopback:owner", receipt, 0.0, overtaken=found.overtaken
            )

    for e in events:
        await store.write(lambda db, e=e: operation(db, e))


def opinions(label: Label | None) -> dict[str, Opinion]:
    if label is None:
        return {}
    both = label.stars is not None
    return {"loopback:owner": [label.value, label.stars] if both else label.value}  # type: ignore[list-item]


@settings(max_examples=25)
@given(st.lists(histories(), min_size=4, max_size=8), st.randoms(use_true_random=False))
def test_the_store_folds_alike_however_they_arrive(
    tmp_path_factory: pytest.TempPathFactory, histories: list[list[LedgerEvent]], chance: random.Random
) -> None:
    """Several turns at once; of every second one the record of the message comes last of all."""

    async def scenario() -> None:
        store = await Store.open(tmp_path_factory.mktemp("store") / "goodbot.db")
        try:
            names = [f"t{i}" for i in range(len(histories))]
            for name in names[::2]:
                await add_turn(store, name)
            events = [stored(e, n) for n, h in zip(names, histories, strict=True) for e in h]
            events += chance.choices(events, k=len(events) // 2)
            chance.shuffle(events)
            await take(store, events)
            for name in names[1::2]:
                await add_turn(store, name)
            await take(store, events)
            for name, history in zip(names, histories, strict=True):
                found = await store.read(lambda db, n=name: ledger.labels(db, n))
                assert found == opinions(fold(history)), name
            before = await rows(store, "SELECT * FROM labels ORDER BY turn")
            await store.write(rebuild)
            assert await rows(store, "SELECT * FROM labels ORDER BY turn") == before
        finally:
            await store.close()

    asyncio.run(scenario())


@pytest.mark.parametrize("known", [True, False])
async def test_a_redaction_may_come_before_its_reaction(tmp_path: Path, known: bool) -> None:
    """Whether the message that they are on is known by then or not."""
    store = await Store.open(tmp_path / "goodbot.db")
    try:
        if known:
            await add_turn(store, "t")
        await take(store, [retract("2", 2, retracts="1", message_id=""), rate("1", 1, 1.0)])
        if not known:
            await add_turn(store, "t")
        assert await store.read(lambda db: ledger.labels(db, "t")) == {}
        await take(store, [rate("3", 3, 1.0)])  # put there again
        assert await store.read(lambda db: ledger.labels(db, "t")) == {"loopback:owner": 1.0}
    finally:
        await store.close()


async def test_another_persons_undo_and_redaction_change_nothing(tmp_path: Path) -> None:
    store = await Store.open(tmp_path / "goodbot.db")
    try:
        await add_turn(store, "t")
        await take(store, [rate("1", 1, 1.0)])
        for other in (retract("2", 2), retract("3", 3, retracts="1")):
            receipt = Receipt(event_id=other.event_id, outcome=Outcome.ACCEPTED)
            await store.write(
                lambda db, e=other, r=receipt: ledger.insert(db, e, "t", "loopback:rater", r, 0.0)
            )
        assert await store.read(lambda db: ledger.labels(db, "t")) == {"loopback:owner": 1.0}
    finally:
        await store.close()
