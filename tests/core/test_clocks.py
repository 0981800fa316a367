# SPDX-License-Identifier: Apache-2.0
"""No rating is told of and does not count, whatever the clocks of this machine and of platforms say."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

from goodbot.api.events import MessageRef, OrderKey, RatingEvent
from goodbot.base.clock import SystemClock
from goodbot.daemon.control import execute
from goodbot.daemon.wiring import local_owner
from goodbot.store import ledger, messages, people
from hypothesis import given, settings
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
