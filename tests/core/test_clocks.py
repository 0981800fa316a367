# SPDX-License-Identifier: Apache-2.0
"""No rating is told of and does not count, whatever the clocks of this machine and of platforms say."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from goodbot.access import linking
from goodbot.api.events import MessageRef, OrderKey, RatingEvent, RatingKind
from goodbot.api.labels import LedgerEvent, fold
from goodbot.base.clock import SystemClock
from goodbot.daemon.connectors import local_owner
from goodbot.daemon.control import execute
from goodbot.store import Store, ledger, messages, people, placing
from goodbot.store.query import fetch
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.core.builders import Bot, add_turn, open_bot, rate, retract

START = 1_800_000_000_000

STEPS = st.lists(
    st.tuples(
        st.booleans(),  # by our clock, or by the platform's
        st.integers(-300_000, 300_000),  # so far our clock jumps before
        st.integers(0, 90_000),  # so much time passes
        st.sampled_from([1.0, -1.0, None]),
    ),
    min_size=2,
    max_size=8,
)


def event(number: int, turn: str, at: OrderKey, value: float | None) -> RatingEvent:
    """What somebody says, or that they take all back."""
    if value is None:
        made = retract(f"{turn}-{number}", 0, turn)
    else:
        made = rate(f"{turn}-{number}", 0, value, turn, source="command" if at.ours else "button")
    return replace(made, order=at)


async def submitted(bot: Bot, made: RatingEvent, turn: str) -> tuple[str, object]:
    """What its rater is told, and what they are held to think then."""
    [receipt] = await bot.chat.host.submit([made])
    labels = await bot.store.read(lambda db: ledger.labels(db, turn))
    return receipt.text, labels.get("loopback:owner")


@settings(max_examples=4, deadline=None)
@given(st.lists(STEPS, min_size=8, max_size=16), st.integers(-300_000, 300_000))
async def test_b1_f2_what_is_told_is_what_counts_whatever_the_clocks_say(
    histories: list[list[tuple[bool, int, int, float | None]]], skew: int
) -> None:
    with tempfile.TemporaryDirectory() as home:
        async with open_bot(Path(home)) as bot:
            for n, steps in enumerate(histories):
                await add_turn(bot.store, turn := f"t{n}")
                true, jumped = START, 0
                for number, (ours, jump, passes, value) in enumerate(steps):
                    true, jumped = true + 1 + passes, jumped + jump
                    at = OrderKey(true + jumped, ours=True) if ours else OrderKey(true + skew)
                    told, label = await submitted(bot, event(number, turn, at, value), turn)
                    word = {1.0: "Good. ", -1.0: "Bad. ", None: "Taken back. "}[value]
                    assert (told.startswith(word), label) == (True, value), (told, number, steps)


class Lying(SystemClock):
    """A clock that somebody sets."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def now(self) -> float:
        return START / 1000 + self.ahead


DOORS = st.lists(
    st.tuples(
        st.sampled_from(["command line", "page", "platform"]),
        st.integers(-300_000, 300_000),  # our clock jumps so far, as at a restart
        st.integers(0, 90_000),
        st.sampled_from([1.0, -1.0, None]),
    ),
    min_size=2,
    max_size=8,
)


@settings(max_examples=4, deadline=None)
@given(st.lists(DOORS, min_size=6, max_size=12), st.integers(-300_000, 300_000))
async def test_b1_through_whatever_door_one_rates_what_was_done_counts(
    histories: list[list[tuple[str, int, int, float | None]]], skew: int
) -> None:
    """One person's accounts: the command line, a page, and a chat platform that has its own clock."""
    words = {1.0: "Good. ", -1.0: "Bad. ", None: "Taken back. "}
    commands = {1.0: "good", -1.0: "bad", None: "undo"}
    [(_, grants)] = local_owner().items()
    me = f"terminal:{grants.owners[0]}"
    clock = Lying()
    with tempfile.TemporaryDirectory() as home:
        async with open_bot(Path(home), clock=clock, terminal=True) as bot:
            await bot.store.write(lambda db: people.link(db, me, "loopback:owner", 1.0))
            for n, steps in enumerate(histories):
                await add_turn(bot.store, turn := f"t{n}")
                true = START
                for number, (door, jump, passes, value) in enumerate(steps):
                    true, clock.ahead = true + 1 + passes, clock.ahead + jump / 1000
                    before = await bot.store.read(lambda db, t=turn: ledger.labels(db, t))
                    if door == "command line":
                        told = (await execute(bot.app, commands[value], [turn])).text
                    else:
                        page = door == "page"
                        now = OrderKey(int(clock.now() * 1000), ours=True)
                        at = now if page else OrderKey(true + skew)
                        told, _ = await submitted(bot, event(number, turn, at, value), turn)
                    after = await bot.store.read(lambda db, t=turn: ledger.labels(db, t))
                    assert list(after.values()) == ([] if value is None else [value]), (steps, told)
                    nothing = value is None and not before and door == "command line"
                    expected = "You have nothing to take back there" if nothing else words[value]
                    assert told.startswith(expected), (told, number, steps)


async def test_b1_the_command_line_s_last_word_counts_after_the_clock_was_set_back_over_a_restart(
    tmp_path: Path,
) -> None:
    clock = Lying()
    async with open_bot(tmp_path, clock=clock, terminal=True) as bot:
        await add_turn(bot.store, "t")
        assert (await execute(bot.app, "good", ["t"])).text.startswith("Good.")
    clock.ahead = -600.0
    async with open_bot(tmp_path, clock=clock, terminal=True) as bot:
        assert (await execute(bot.app, "bad", ["t"])).text.startswith("Bad.")
        assert [*(await bot.store.read(lambda db: ledger.labels(db, "t"))).values()] == [-1.0]
        assert (await execute(bot.app, "undo", ["t"])).text.startswith("Taken back.")
        assert await bot.store.read(lambda db: ledger.labels(db, "t")) == {}


async def test_a_late_press_says_that_a_later_one_counts(tmp_path: Path) -> None:
    """By one clock the later time wins, in whatever order they come; the receipt says so."""
    async with open_bot(tmp_path) as bot:
        await add_turn(bot.store, "t")
        assert (await submitted(bot, rate("a", 10, 1.0, source="button"), "t"))[1] == 1.0
        told, label = await submitted(bot, rate("b", 5, -1.0, source="button"), "t")
        assert (label, told.startswith("Bad")) == (1.0, False)
        assert told.startswith("That changes nothing: your other rating counts, “good”.")
        told, label = await submitted(bot, retract("c", 7), "t")
        assert (label, told.startswith("Taken back")) == (1.0, False)


async def test_where_a_platform_s_clock_stands_what_came_last_counts(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await add_turn(bot.store, "t")
        for number in range(9, 0, -1):  # no id of theirs decides it
            value = (1.0, -1.0, None)[number % 3]
            made = event(number, "t", OrderKey(5), value)
            told, label = await submitted(bot, made, "t")
            assert label == value, told
        assert (await submitted(bot, event(99, "t", OrderKey(4), 1.0), "t"))[1] == label


async def test_what_comes_after_our_own_time_keeps_its_own_order(tmp_path: Path) -> None:
    """A reaction and its removal that arrive the wrong way round, by a platform that is behind."""
    async with open_bot(tmp_path) as bot:
        await add_turn(bot.store, "t")
        bad = event(0, "t", OrderKey(START, ours=True), -1.0)
        assert (await submitted(bot, bad, "t"))[1] == -1.0
        removed = retract("r", START - 500, source="reaction:+")
        assert (await submitted(bot, removed, "t"))[1] == -1.0
        assert (await submitted(bot, rate("g", START - 600, 1.0), "t"))[1] == -1.0
        assert (await submitted(bot, rate("h", START - 400, 1.0), "t"))[1] == 1.0


async def test_our_own_time_comes_after_a_reaction_to_a_message_that_is_not_recorded_yet(
    tmp_path: Path,
) -> None:
    async with open_bot(tmp_path) as bot:
        made = await add_turn(bot.store, "t")
        late = {"message_id": "later", "turn": ""}
        await bot.chat.host.submit([rate("a", START, 1.0, **late)])
        behind = rate("b", 0, -1.0, **late, source="modal")
        order = OrderKey(START - 180_000, ours=True)
        await bot.chat.host.submit([replace(behind, order=order)])
        sent = [MessageRef(channel=made.channel, id="later")]
        await bot.store.write(lambda db: messages.attach(db, "t", sent))
        labels = await bot.store.read(lambda db: ledger.labels(db, "t"))
        assert labels == {"loopback:owner": -1.0}


A, B = "loopback:owner", "loopback:rater"
CLOCKS = {"a": "owner", "b": "rater", "ours of a": "owner", "ours of b": "rater"}
Spoken = tuple[str, int, float | None, str]
TOGETHER = st.lists(
    st.tuples(
        st.sampled_from([*CLOCKS]),
        st.integers(0, 6),  # what that clock shows: it stands, jumps and goes back
        st.sampled_from([1.0, -1.0, None]),
        st.sampled_from(["button", "command"]),
    ),
    min_size=2,
    max_size=9,
)


def by(number: int, turn: str, step: Spoken) -> RatingEvent:
    """What one of two accounts says; a platform account is a clock of its own."""
    clock, at, value, source = step
    made = event(number, turn, OrderKey(START + at, ours=clock.startswith("ours")), value)
    user = replace(
        made.user, id=CLOCKS[clock], account="second" if clock.endswith("b") else made.user.account
    )
    channel = replace(made.channel, account=user.account)
    source = "" if value is None else source
    return replace(made, user=user, channel=channel, source=source)


async def places(store: Store, turn: str) -> list[tuple[int, str]]:
    query = "SELECT time_ms, tiebreak FROM events WHERE turn = ? ORDER BY seq"
    return [(row[0], row[1]) for row in await store.read(lambda db: fetch(db, query, (turn,)))]


async def said(bot: Bot, turn: str, made: RatingEvent) -> None:
    """As `Ratings.rate` stores it; a second account of a platform has no connector running here."""

    await bot.store.write(lambda db: bot.app.ratings.rate(db, made, turn))


@settings(max_examples=3, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(
    st.lists(
        st.tuples(TOGETHER, st.lists(st.integers(0, 9), min_size=3, max_size=3)), min_size=8, max_size=16
    )
)
async def test_b1_who_is_one_person_later_has_said_the_same_as_who_always_was(
    histories: list[tuple[list[Spoken], list[int]]],
) -> None:
    """Two accounts by three clocks; they are joined in between, parted and joined again."""
    with tempfile.TemporaryDirectory() as home:
        async with open_bot(Path(home)) as bot:
            for n, (steps, changes) in enumerate(histories):
                found: list[object] = []
                for turn, joined in ((f"always{n}", [0, 99, 99]), (f"later{n}", sorted(changes))):
                    await linked(bot, False)
                    await add_turn(bot.store, turn)
                    for number, step in enumerate(steps):
                        for at, together in zip(joined, (True, False, True), strict=True):
                            if at == number:
                                await linked(bot, together)
                        await said(bot, turn, by(number, turn, step))
                    await linked(bot, True)
                    stood = await places(bot.store, turn)
                    await bot.store.write(lambda db, t=turn: placing.anew(db, t, A))
                    assert await places(bot.store, turn) == stood, steps
                    found.append(await bot.store.read(lambda db, t=turn: ledger.labels(db, t)))
                assert found[0] == found[1], (steps, changes)


async def linked(bot: Bot, together: bool) -> None:
    if together:
        await bot.store.write(lambda db: linking.join(db, "default", A, B, 1.0))
    else:
        apart = await bot.store.write(lambda db: people.unlink(db, B, 1.0, owners=()))
        await bot.store.write(lambda db: linking.refold(db, "default", apart or [A, B]))


async def test_b1_what_came_last_counts_where_two_accounts_become_one_persons(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await add_turn(bot.store, "t")
        await said(bot, "t", by(0, "t", ("ours of b", 300_000, -1.0, "button")))
        await said(bot, "t", by(1, "t", ("a", 1_000, 1.0, "button")))
        await linked(bot, True)
        assert await bot.store.read(lambda db: ledger.labels(db, "t")) == {A: 1.0}
        await linked(bot, False)
        assert await bot.store.read(lambda db: ledger.labels(db, "t")) == {A: 1.0, B: -1.0}
        await said(bot, "t", by(2, "t", ("a", 2_000, -1.0, "button")))
        assert await bot.store.read(lambda db: ledger.labels(db, "t")) == {A: -1.0, B: -1.0}


@pytest.mark.parametrize(("first", "second"), [("a", "b"), ("b", "a")])
async def test_b1_by_our_clock_the_last_of_several_accounts_is_the_last(
    tmp_path: Path, first: str, second: str
) -> None:
    """The clock was set back after what another account of theirs said by it."""
    async with open_bot(tmp_path) as bot:
        await add_turn(bot.store, "t")
        await linked(bot, True)
        await said(bot, "t", by(0, "t", (f"ours of {first}", 0, 1.0, "button")))
        await said(bot, "t", by(1, "t", (f"ours of {second}", 300_000, 1.0, "button")))
        await said(bot, "t", by(2, "t", (f"ours of {first}", 10, None, "button")))
        assert await bot.store.read(lambda db: ledger.labels(db, "t")) == {}


async def test_b1_two_clocks_that_stand_make_no_text_ever_longer(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await add_turn(bot.store, "t")
        await linked(bot, True)
        for number in range(60):
            value = 1.0 if number % 3 else -1.0
            await said(bot, "t", by(number, "t", ("a" if number % 2 else "b", 0, value, "button")))
            labels = await bot.store.read(lambda db: ledger.labels(db, "t"))
            assert labels == {A: value}, number
        assert max(len(tiebreak) for _, tiebreak in await places(bot.store, "t")) < 300


async def test_b1_what_two_accounts_said_of_a_message_before_it_is_known_counts_as_it_came(
    tmp_path: Path,
) -> None:
    async with open_bot(tmp_path) as bot:
        made = await add_turn(bot.store, "t")
        late = {"message_id": "later", "turn": ""}
        await bot.chat.host.submit([replace(by(0, "t", ("ours of b", 300_000, -1.0, "button")), **late)])
        await bot.chat.host.submit([replace(by(1, "t", ("a", 1_000, 1.0, "button")), **late)])
        await bot.store.write(lambda db: people.link(db, A, B, 1.0))
        sent = [MessageRef(channel=made.channel, id="later")]
        await bot.store.write(lambda db: messages.attach(db, "t", sent))
        assert await bot.store.read(lambda db: ledger.labels(db, "t")) == {A: 1.0}


COLUMNS = (
    "connector, account, event_id, kind, turn, rater, channel, message, source, value, retracts, text,"
    " time_ms, tiebreak, received_at, receipt"
)


async def changed(bot: Bot, first: int, last: int) -> None:
    """They changed their mind so often: by two clocks, up and down, taking back by name or altogether."""

    def one(number: int) -> tuple[object, ...]:
        ours = "~" * (number % 2)
        source, value = ("command" if ours else "button"), (1.0, -1.0)[number % 3 > 0]
        kind, retracts = "rate", ""
        if number % 5 == 0:
            kind, source, value, retracts = "retract", "", None, f"{number - 1}" * (number % 2)
        at = (START + number, f"{ours}{number}")
        place = ("loopback", "loopback", f"{number}", kind, "t", A, "c", "m")
        return (*place, source, value, retracts, "", *at, 0.0, "{}")

    made = [one(number) for number in range(first, last)]
    insert = f"INSERT INTO events ({COLUMNS}) VALUES ({', '.join('?' * 16)})"
    await bot.store.write(lambda db: db.executemany(insert, made))
    await bot.store.write(lambda db: ledger.refold(db, "t", A))


async def instructions(bot: Bot, made: RatingEvent) -> int:
    """What SQLite does for one rating, from the event to its receipt."""
    steps = [0]

    def step() -> None:
        steps[0] += 1

    writing: Any = bot.store._writing
    await writing.set_progress_handler(step, 1)
    await submitted(bot, made, "t")
    await writing.set_progress_handler(None, 1)
    return steps[0]


async def test_a_rating_costs_the_same_after_ten_changes_and_after_two_thousand(tmp_path: Path) -> None:
    """Who changed a mind 2,250 times paid 22 ms of the one writer for each further one."""
    async with open_bot(tmp_path) as bot:
        await add_turn(bot.store, "t")
        taken: dict[tuple[int, float | None], int] = {}
        for first, last in ((0, 10), (10, 2000)):
            await changed(bot, first, last)
            for n, value in enumerate((1.0, -1.0, None)):
                made = event(last * 10 + n, "t", OrderKey(START + last * 10 + n), value)
                taken[last, value] = await instructions(bot, made)
        for value in (1.0, -1.0, None):
            assert taken[2000, value] < taken[10, value] * 1.2, taken


ALL = (
    "SELECT connector || account || event_id, time_ms, tiebreak, kind, rater || source, value, retracts"
    " FROM events WHERE turn = ?"
)


@settings(max_examples=3, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(st.lists(TOGETHER, min_size=6, max_size=12))
async def test_the_label_is_the_fold_of_all_that_was_said(histories: list[list[Spoken]]) -> None:
    with tempfile.TemporaryDirectory() as home:
        async with open_bot(Path(home)) as bot:
            await linked(bot, True)
            for n, steps in enumerate(histories):
                await add_turn(bot.store, turn := f"t{n}")
                for number, step in enumerate(steps):
                    await said(bot, turn, by(number, turn, step))
                found = await bot.store.read(lambda db, t=turn: fetch(db, ALL, (t,)))
                label = fold(
                    LedgerEvent(
                        event_id=id_,
                        order=OrderKey(at, tie),
                        kind=RatingKind(kind),
                        source=source if kind == "rate" else "",  # here all is taken back
                        value=value,
                        retracts=retracts,
                    )
                    for id_, at, tie, kind, source, value, retracts in found
                )
                stored = await bot.store.read(lambda db, t=turn: ledger.labels(db, t))
                assert stored == ({A: label.value} if label else {}), steps
