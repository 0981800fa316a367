# SPDX-License-Identifier: Apache-2.0
"""Stars beside a thumb: given by a command, kept apart, and what each reward policy makes of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from goodbot import RewardPolicy, hookimpl
from goodbot.api.rewards import TurnRating
from goodbot.learning.training.batch import take, usual
from goodbot.learning.training.filtering import Screening
from goodbot.store import basis

from tests.core.builders import Bot, check, open_bot, rows


async def test_stars_are_given_changed_and_taken_back_without_the_thumb(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        answer = await bot.say("question")
        assert (await bot.command("stars", "4")).startswith("4 of 5 stars. 1 of 8")
        assert await bot.labels(answer) == {"loopback:owner": 0.5}
        await bot.react(answer, "👍")
        assert await bot.labels(answer) == {"loopback:owner": [1.0, 0.5]}
        await bot.command("rate", f"2 {answer.turn}")
        assert await bot.labels(answer) == {"loopback:owner": [1.0, -0.5]}
        assert (await bot.command("stars", "0")).startswith("Taken back.")
        assert await bot.labels(answer) == {"loopback:owner": 1.0}
        await bot.command("stars", "5")
        await bot.unreact(answer, "👍")
        assert await bot.labels(answer) == {"loopback:owner": 1.0}
        await bot.command("undo")
        assert await bot.labels(answer) == {}


@pytest.mark.parametrize("words", ["", "6", "many", "-1", "4.5"])
async def test_what_is_no_number_of_stars_is_refused_with_how_to_say_it(tmp_path: Path, words: str) -> None:
    async with open_bot(tmp_path) as bot:
        answer = await bot.say("question")
        assert "say how many stars, 1 to 5" in await bot.command("stars", words)
        assert await bot.labels(answer) == {}


@pytest.mark.parametrize(
    ("policy", "expected"), [("binary", 1.0), ("ordinal", 0.5), ("hybrid", 0.8), ("normalized", 0.8)]
)
async def test_the_configured_policy_decides_and_is_stored_with_the_run(
    tmp_path: Path, policy: str, expected: float
) -> None:
    async with open_bot(tmp_path, reward=policy) as bot:
        for question in ("one", "another"):
            await bot.react(await bot.say(question), "👍")
            await bot.command("stars", "4")
        await bot.train()
        for (reward,) in await rows(bot.store, "SELECT reward FROM run_items"):
            assert reward == pytest.approx(expected)
        [(stored,)] = await rows(bot.store, "SELECT settings ->> 'reward' FROM runs")
        assert stored == policy
        assert (await bot.status())["reward"] == policy


async def test_normalized_goes_by_the_rewards_of_the_rounds_before(tmp_path: Path) -> None:
    async with open_bot(tmp_path, reward="normalized") as bot:
        for stars in "5555555544":
            await bot.say(f"an answer worth {stars}")
            await bot.command("stars", stars)
        await bot.train()
        await bot.say("an answer worth 3")
        await bot.command("stars", "3")
        await bot.train()  # with what was held out before
        [(found,)] = await rows(
            bot.store,
            "SELECT i.reward FROM run_items i JOIN turns t ON t.id = i.turn"
            " WHERE i.run = 2 AND t.response LIKE '%worth 3'",
        )
        assert found == -1.0, "middling, where the others got four and five"


async def test_t9_what_was_taken_back_scales_nothing_any_more(tmp_path: Path) -> None:
    """A run that was refused keeps what it has claimed, and no undo ends it."""
    async with open_bot(tmp_path, reward="normalized") as bot:
        await bot.rated(8)
        bot.fake.set(train="refuse")
        assert (await bot.train()).state == "refused"

        async def past() -> int:
            return len(await bot.store.read(lambda db: basis.past_labels(db, bot.app.pool, 256)))

        used = await rows(bot.store, "SELECT turn FROM run_items WHERE split = 'train' ORDER BY turn")
        assert await past() == len(used) == 6
        for left, (turn,) in zip(range(5, -1, -1), used, strict=True):
            await bot.command("undo", turn)
            assert await past() == left


async def test_stars_that_come_later_take_nothing_back_and_stars_taken_back_do(tmp_path: Path) -> None:
    async with open_bot(tmp_path, reward="hybrid") as bot:
        await bot.rated(8)
        await bot.train()
        learnt = await bot.trained(1)
        target = next(a for a in bot.answers if a.turn in learnt)
        await bot.command("stars", f"4 {target.turn}")
        await check(bot)
        assert (await bot.app.registry.row(1)).tainted == ""
        await bot.rated(8)
        for answer in bot.answers[8:]:
            await bot.command("stars", f"3 {answer.turn}")
        await bot.train()
        learnt = await bot.trained_by(2)
        other = next(a for a in bot.answers[8:] if a.turn in learnt)
        await bot.command("stars", f"0 {other.turn}")
        assert (await bot.app.registry.row(2)).tainted != ""
        await check(bot)


async def test_a_label_without_stars_is_as_it_always_was(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        await bot.train()
        found = await rows(bot.store, "SELECT labels FROM run_items")
        assert {labels for (labels,) in found} == {'{"loopback:owner":1.0}', '{"loopback:owner":-1.0}'}


NEITHER = "Three stars alone are neither good nor bad: I learn nothing from them."


class Agreeing:
    """A plugin's policy: what one person says is nothing, what two say alike is worth half."""

    def __init__(self) -> None:
        self.asked = 0

    @hookimpl
    def register_reward_policy(self) -> RewardPolicy:
        return RewardPolicy(name="agreeing", fn=self._reward)

    def _reward(self, said: Sequence[TurnRating]) -> float | None:
        self.asked += 1
        return None if len(said) < 2 else said[0].value / 2


async def claimed(bot: Bot) -> int:
    """How many answers a training would claim now, as it is."""
    screening = Screening(bot.app.filtering)
    taking = usual(bot.app, screening, parent=0)
    _, items = await screening.through(lambda: bot.store.read(lambda db: take(db, taking)))
    return len(items)


@pytest.mark.parametrize(
    ("policy", "counted"), [("binary", 0), ("ordinal", 1), ("hybrid", 1), ("normalized", 1)]
)
async def test_three_stars_are_told_counted_and_claimed_alike(
    tmp_path: Path, policy: str, counted: int
) -> None:
    async with open_bot(tmp_path, reward=policy) as bot:
        await bot.say("question")
        said = await bot.command("stars", "3")
        assert said.startswith(f"3 of 5 stars. {counted} of 8")
        assert (NEITHER in said) is not counted
        assert (await bot.status())["ratings"] == counted == await claimed(bot)
        await bot.command("undo")
        assert (await bot.status())["ratings"] == 0 == await claimed(bot)


@pytest.mark.parametrize(("policy", "counted"), [("binary", 0), ("ordinal", 1), ("hybrid", 1)])
async def test_a_tie_is_counted_as_the_policy_claims_it(tmp_path: Path, policy: str, counted: int) -> None:
    async with open_bot(tmp_path, reward=policy) as bot:
        answer = await bot.say("question")
        assert "1 of 8" in (await bot.chat.press(answer, "good")).text
        said = (await bot.chat.press(answer, "bad", user="rater")).text
        assert said.startswith(f"Bad. {counted} of 8")
        assert ("with what others say" in said) is not counted
        assert (await bot.status())["ratings"] == counted == await claimed(bot)


async def test_a_plugins_policy_decides_what_counts_and_what_is_told(tmp_path: Path) -> None:
    async with open_bot(tmp_path, extra=(Agreeing(),), reward="agreeing") as bot:
        answer = await bot.say("question")
        said = (await bot.chat.press(answer, "good")).text
        assert said.startswith("Good. 0 of 8")
        assert said.endswith("It does not count yet.")
        await bot.react(answer, "👍", user="rater")
        assert (await bot.status())["ratings"] == 1 == await claimed(bot)
        await bot.unreact(answer, "👍", user="rater")
        assert (await bot.status())["ratings"] == 0 == await claimed(bot)


async def test_a_plugins_policy_is_asked_once_a_rating(tmp_path: Path) -> None:
    policy = Agreeing()
    async with open_bot(tmp_path, extra=(policy,), reward="agreeing") as bot:
        answer = await bot.say("question")
        for user in ("owner", "rater"):
            before = policy.asked
            await bot.chat.press(answer, "good", user=user)
            assert policy.asked == before + 1


async def test_what_teaches_nothing_is_no_reason_to_try_a_failed_run_again(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        bot.fake.set(train="nan")
        await bot.rated(8)
        for _ in range(3):
            assert (await bot.train()).state == "failed"
        assert "1 new rating until another try" in (await bot.status())["next"]
        await bot.say("question")
        await bot.command("stars", "3")
        assert "1 new rating until another try" in (await bot.status())["next"]
        await bot.command("stars", "4")
        assert "until another try" not in (await bot.status())["next"]


async def test_another_policy_counts_anew(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(2)
        await bot.say("question")
        await bot.command("stars", "3")
        assert (await bot.status())["ratings"] == 2
    for policy, counted in (("ordinal", 3), ("binary", 2), ("agreeing", 0), ("hybrid", 3)):
        async with open_bot(tmp_path, extra=(Agreeing(),), reward=policy) as bot:
            assert (await bot.status())["ratings"] == counted == await claimed(bot), policy
            await check(bot)


async def test_a_policy_that_fails_loses_no_rating(tmp_path: Path) -> None:
    class Broken:
        @hookimpl
        def register_reward_policy(self) -> RewardPolicy:
            return RewardPolicy(name="broken", fn=lambda said: 1 / 0)

    async with open_bot(tmp_path, extra=(Broken(),), reward="broken") as bot:
        answer = await bot.say("question")
        assert "1 of 8" in (await bot.chat.press(answer, "good")).text
        assert await bot.labels(answer) == {"loopback:owner": 1.0}
