# SPDX-License-Identifier: Apache-2.0
"""Whatever people, trainings, rollbacks and crashes do in whatever order: the invariants hold.

A Hypothesis state machine over a whole goodbot (real store, real child processes, a fake model).
The model is a dict of what each person thinks of each answer; everything else is asked of it.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import tempfile
from pathlib import Path
from typing import Any

from goodbot.api.events import RatingEvent
from goodbot.daemon.loopback import Answer
from goodbot.store import ledger
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.core.builders import Bot, check, open_bot, rate, retract, rows
from tests.core.made import OWNER
from tests.support import patience

RATERS = ("owner", "rater")
VALUES = {"👍": 1.0, "👎": -1.0}


class Machine(RuleBasedStateMachine):
    """People rate and change their minds while it learns, stops, goes back and dies."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.home = Path(tempfile.mkdtemp(prefix="goodbot-machine-"))
        self.answers: list[Answer] = []
        self.reactions: dict[tuple[int, str], dict[str, int]] = {}
        """(answer, rater) → live reactions and when they were put there."""
        self.sent: list[RatingEvent] = []
        self.acked: set[str] = set()
        self.clock = 1000
        self.slow = False
        self.linked = False
        self.bot: Bot
        self._open()
        self.run(self._first_answers())

    def run(self, work: Any) -> Any:
        return self.loop.run_until_complete(asyncio.wait_for(work, patience(20)))

    def _open(self) -> None:
        self.stack = contextlib.AsyncExitStack()
        self.bot = self.run(self.stack.enter_async_context(open_bot(self.home, min_ratings=4, held_out=1)))
        self.bot.fake.set(train="ok")
        self.slow = False

    async def _first_answers(self) -> None:
        for number in range(6):
            self.answers.append(await self.bot.say(f"question {number}"))

    async def _submit(self, event: RatingEvent) -> None:
        self.sent.append(event)
        await self.bot.chat.host.submit([event])
        self.acked.add(event.event_id)

    def _event(self, answer: int, rater: str, emoji: str, value: float | None) -> RatingEvent:
        self.clock += 1
        ref = self.answers[answer].message
        common = {
            "user": type(OWNER)(connector="loopback", account="loopback", id=rater),
            "channel": ref.channel,
            "message_id": ref.id,
            "source": f"reaction:{emoji}",
        }
        if value is None:
            return retract(f"r{self.clock}", self.clock, **common)
        return rate(f"r{self.clock}", self.clock, value, **common)

    # -- people

    @rule(answer=st.integers(0, 30), rater=st.sampled_from(RATERS), emoji=st.sampled_from("👍👎"))
    def react(self, answer: int, rater: str, emoji: str) -> None:
        answer %= len(self.answers)
        self.run(self._submit(self._event(answer, rater, emoji, VALUES[emoji])))
        self.reactions.setdefault((answer, rater), {})[emoji] = self.clock

    @rule(count=st.integers(2, 6))
    def react_to_several(self, count: int) -> None:
        for answer in range(len(self.answers))[-count:]:
            self.react(answer, "owner", "👍" if answer % 2 else "👎")

    @precondition(lambda self: self.reactions)
    @rule(choice=st.integers(0, 100))
    def unreact(self, choice: int) -> None:
        (answer, rater), live = sorted(self.reactions.items())[choice % len(self.reactions)]
        emoji = sorted(live)[choice % len(live)]
        self.run(self._submit(self._event(answer, rater, emoji, None)))
        del live[emoji]
        if not live:
            del self.reactions[answer, rater]

    @precondition(lambda self: self.sent)
    @rule(choice=st.integers(0, 1000))
    def deliver_again(self, choice: int) -> None:
        self.run(self.bot.chat.host.submit([self.sent[choice % len(self.sent)]]))

    @precondition(lambda self: len(self.answers) < 24)
    @rule()
    def talk(self) -> None:
        for _ in range(3):
            self.answers.append(self.run(self.bot.say(f"question {len(self.answers)}")))

    # -- training

    @precondition(lambda self: not self.slow)
    @rule()
    def train(self) -> None:
        self.run(self.bot.settle())
        self.run(self.bot.command("train", "wait"))

    @precondition(lambda self: not self.slow)
    @rule()
    def begin_to_train(self) -> None:
        self.run(self.bot.settle())
        if self.run(self.bot.status())["ratings"] >= 2:
            self.run(self.bot.start_training())
            self.slow = True

    @precondition(lambda self: self.slow)
    @rule()
    def finish_training(self) -> None:
        self.run(self.bot.finish_training())
        self.slow = False

    @precondition(lambda self: self.slow)
    @rule()
    def pause(self) -> None:
        """The run waits, whatever happens meanwhile."""
        self.bot.fake.set(train="ok")  # for what may start afterwards
        self.run(self.bot.command("pause"))
        self.slow = False

    @rule()
    def resume(self) -> None:
        self.run(self.bot.command("resume"))

    @rule()
    def cancel(self) -> None:
        self.bot.fake.set(train="ok")
        self.run(self.bot.command("cancel"))
        self.slow = False

    @rule(to=st.sampled_from(["", "base", "1", "2", "3"]))
    def roll_back(self, to: str) -> None:
        self.bot.fake.set(train="ok")  # for what may start afterwards
        self.run(self.bot.rollback(to))
        if self.slow:  # a rollback ends the run, unless there is nothing to go back to
            run = self.run(self.bot.last_run())
            if run.state == "running" and self.bot.is_slow(run.id):
                self.run(self.bot.finish_training())
            self.slow = False

    # -- who is who

    @rule()
    def link(self) -> None:
        """The rater is the owner's second account."""
        code = self.run(self.bot.command("link")).split()[0]
        self.run(self.bot.command("link", code, user="rater"))
        self.linked = True

    @rule()
    def unlink(self) -> None:
        self.run(self.bot.command("unlink", user="rater"))
        self.linked = False

    @rule(who=st.sampled_from(["rater", "rater", "owner"]))
    def forget(self, who: str) -> None:
        self.bot.fake.set(train="ok")  # for what may start afterwards
        self.run(self.bot.command("forget", "me", user=who))
        assert "deleted" in self.run(self.bot.command("forget", "me yes", user=who))
        if self.slow:  # the run ends if it has learnt from them
            run = self.run(self.bot.last_run())
            if run.state == "running" and self.bot.is_slow(run.id):
                self.run(self.bot.finish_training())
            self.slow = False
        gone = RATERS if self.linked else (who,)
        self.linked = False
        asked = "owner" in gone  # the owner asked all questions
        self.reactions = {
            (n, rater): live for (n, rater), live in self.reactions.items() if rater not in gone and not asked
        }
        kept = [event for event in self.sent if event.user.id not in gone and not asked]
        self.sent, self.acked = kept, {event.event_id for event in kept}
        if asked:
            self.answers = []
            self.run(self._first_answers())

    # -- crashes

    @rule(how=st.sampled_from(["stop", "crash"]))
    def stop_and_start(self, how: str) -> None:
        if how == "crash":  # nothing of the orderly end reaches the store

            async def lost(*args: Any) -> Any:
                raise OSError("the process is dead")

            self.bot.store._writer.write = lost  # type: ignore[method-assign]
        with contextlib.suppress(OSError):
            self.run(self.stack.aclose())
        self._open()

    # -- what always holds

    @invariant()
    def labels_are_what_people_think_now(self) -> None:
        for number, answer in enumerate(self.answers):
            expected: dict[str, float] = {}
            said: dict[str, dict[str, int]] = {}
            for (n, rater), live in self.reactions.items():
                if n == number:
                    who = "owner" if self.linked else rater
                    latest = max(live, key=live.__getitem__)
                    said.setdefault(who, {})[latest] = live[latest]
            for who, live in said.items():
                expected[f"loopback:{who}"] = VALUES[max(live, key=live.__getitem__)]
            found = self.run(self.bot.store.read(lambda db, a=answer: ledger.labels(db, a.turn)))
            assert found == expected

    @invariant()
    def every_acknowledged_event_is_there_once(self) -> None:
        stored = self.run(rows(self.bot.store, "SELECT event_id FROM events"))
        assert sorted(id_ for (id_,) in stored) == sorted(self.acked)

    @precondition(lambda self: not self.slow)
    @invariant()
    def the_invariants_of_the_design(self) -> None:
        self.run(check(self.bot))

    def teardown(self) -> None:
        self.run(self.stack.aclose())
        self.loop.close()
        shutil.rmtree(self.home, ignore_errors=True)


Machine.TestCase.settings = settings(
    max_examples=10,
    stateful_step_count=25,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
TestMachine = Machine.TestCase
