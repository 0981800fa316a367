# SPDX-License-Identifier: Apache-2.0
"""What judged answers weigh in a round, how that is shown, and how it is taken back."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import AsyncGenerator
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from goodbot.features.filters import plugin as filters
from goodbot.learning.rating_quality import contradictions
from goodbot.learning.training import batch, claims
from goodbot.learning.training.filtering import Screening
from goodbot.learning.training.job_spec import make_job
from goodbot.store import judgements, objections
from goodbot.store.runs import RunItem

from tests.core.builders import Bot, check, rows
from tests.core.judging.stage import Agent, judge_server, judged_bot, look, past, tool, user

FAILED, PASSED = "Exit code 2\nno such file", "3 passed in 0.12s"


async def judged_steps(bot: Bot, *results: str) -> Agent:
    agent = Agent(bot)
    given = [user("Mend the tests.")]
    for number, result in enumerate(results):
        await agent.step(given, f"I look at {number}.", f"call-{number}")
        given = [tool(result)]
    await agent.step(given, "It is done.")
    await look(bot)
    return agent


async def items(bot: Bot) -> dict[str, tuple[str, float, float, str]]:
    """Of the last run: turn → split, reward, weight, labels."""
    run = (await bot.last_run()).id
    found = await rows(
        bot.store, "SELECT turn, split, reward, weight, labels FROM run_items WHERE run = ?", (run,)
    )
    return {turn: (split, reward, weight, labels) for turn, split, reward, weight, labels in found}


@pytest.mark.parametrize(
    ("values", "weight", "share", "rated", "sums"),
    [
        ([1.0] * 4, 0.5, 0.25, 40.0, 2.0),  # far below the share
        ([1.0] * 100, 0.5, 0.25, 30.0, 10.0),  # a quarter of all that trains
        ([1.0] * 100, 0.5, 1.0, 30.0, 50.0),  # the owner wants it so
        ([1.0] * 100, 0.5, 0.25, 0.0, 0.0),  # without ratings there is no round
        ([1.0, 0.81, 0.5], 0.4, 0.25, 40.0, 0.924),
        ([1.0] * 4, 0.5, 1.0, 0.0, 0.0),
        ([], 0.5, 0.25, 40.0, 0.0),
    ],
)
def test_judged_answers_never_weigh_more_than_their_share(
    values: list[float], weight: float, share: float, rated: float, sums: float
) -> None:
    weights = claims.judge_weights(values, weight, share, rated)
    assert math.isclose(math.fsum(weights), sums, abs_tol=1e-9)
    assert all(0 <= one <= weight < 1 for one in weights), "below a rating"


def test_a_thousand_judged_answers_do_not_take_the_passes_of_the_ratings() -> None:
    weights = claims.judge_weights([1.0] * 1000, 0.5, 0.25, 32.0)
    assert [one for one in weights if one] == [*[pytest.approx(1 / 6)], *[0.5] * 21]
    assert weights[-1] == 0.5, "the newest are taken, the others wait"


async def test_a_round_takes_what_was_judged_beside_the_ratings(tmp_path: Path) -> None:
    async with judged_bot(tmp_path) as bot:
        agent = await judged_steps(bot, FAILED, PASSED)
        await bot.rated(8)
        assert (await bot.status())["ratings"] == 8, "they are no ratings"
        await bot.train()
        found = await items(bot)
        bad, good = (found[turn] for turn in agent.turns[:2])
        assert bad == ("train", -1.0, 0.5, json.dumps({"judge:rule": -1.0}, separators=(",", ":")))
        assert good[:3] == ("train", 1.0, 0.5)
        assert agent.turns[2] not in found
        assert sum(split == "held_out" for split, *_ in found.values()) == 2
        assert await rows(bot.store, "SELECT count(*) FROM turns WHERE spent IS NOT NULL") == [(8,)]
        await check(bot)


async def test_a_training_is_told_what_only_a_judge_has_rated(tmp_path: Path) -> None:
    async with judged_bot(tmp_path) as bot:
        agent, rated = await judged_steps(bot, FAILED), await bot.say("hello")
        labels = {agent.turns[0]: {"judge:rule": -1.0}, rated.turn: {"loopback:owner": 1.0}}
        items = [RunItem(turn=turn, split="train", reward=1.0, labels=said) for turn, said in labels.items()]
        job = await make_job(bot.app, bot.app.registry, run=1, parent=0, items=items, folder=tmp_path / "job")
        assert [item.get("judged", False) for item in job["items"]] == [True, False]


async def test_nothing_trains_of_judgements_alone(tmp_path: Path) -> None:
    async with judged_bot(tmp_path) as bot:
        await judged_steps(bot, *([FAILED] * 9))
        told = await bot.command("train")
        assert told == "0 ratings are not enough to train on: rate some answers first."
        assert await rows(bot.store, "SELECT * FROM runs") == []


async def test_switched_off_again_it_teaches_nothing_more(tmp_path: Path) -> None:
    async with judged_bot(tmp_path) as bot:
        agent = await judged_steps(bot, FAILED)
    async with judged_bot(tmp_path, judge={"by": ""}) as bot:
        await bot.rated(8)
        await bot.train()
        assert agent.turns[0] not in await items(bot)


async def test_a_rating_after_the_round_takes_the_judgement_out_of_the_weights(tmp_path: Path) -> None:
    async with judged_bot(tmp_path) as bot:
        agent = await judged_steps(bot, FAILED)
        await bot.rated(8)
        await bot.train()
        assert (await bot.app.registry.row(1)).tainted == ""
        await bot.command("good", agent.turns[0])
        assert (await bot.app.registry.row(1)).tainted
        await bot.settle()
        learnt = await bot.trained(await bot.app.registry.active())
        assert learnt.get(agent.turns[0], 1.0) == 1.0, "what was judged is in no version that answers"
        await check(bot)


async def test_a_rating_that_agrees_takes_no_version_back(tmp_path: Path) -> None:
    async with judged_bot(tmp_path) as bot:
        agent = await judged_steps(bot, FAILED)
        await bot.rated(8)
        await bot.train()
        await bot.command("bad", agent.turns[0])
        assert (await bot.app.registry.row(1)).tainted == ""
        await bot.command("undo", agent.turns[0])
        assert (await bot.app.registry.row(1)).tainted == "", "and the judgement stands again"


async def test_a_rating_counts_of_what_a_refused_round_took_as_judged(tmp_path: Path) -> None:
    async with judged_bot(tmp_path) as bot:
        agent = await judged_steps(bot, FAILED)
        await bot.rated(8)
        await bot.train()
        await bot.store.write(lambda db: db.execute("UPDATE runs SET state = 'refused'"))
        before = (await bot.status())["ratings"]
        await bot.command("good", agent.turns[0])
        assert (await bot.status())["ratings"] == before + 1


async def test_a_run_that_starts_over_keeps_what_a_person_has_said_the_same_of_in_words(
    tmp_path: Path,
) -> None:
    """Filters were asked about it as judged, so about other words than those that it takes then."""
    async with (
        judge_server(says=["bad"]) as server,
        judged_bot(
            tmp_path,
            judge={"by": "server", "url": server.url, "model": "m"},
            settings={"objective": "hybrid"},
            sections={"filters": {"words": {"block": ["acme"]}}},
            extra=(filters,),
        ) as bot,
    ):
        asked = await bot.say("Tell me of the sea.")
        await bot.say("No, shorter please!")
        await look(bot)
        made = await bot.rated(8)
        await bot.start_training()
        assert asked.turn in await items(bot)
        await bot.react(asked, "👎")
        await bot.chat.comment(asked, "Too long")
        await bot.command("undo", made[0].turn)
        run = await bot.finish_training()
        assert run.state == "activated", run.reason
        assert "owner" in (await items(bot))[asked.turn][3], "as rated"
        await check(bot)


async def test_who_said_it_in_words_is_judged_by_nobody(tmp_path: Path) -> None:
    async with judged_bot(tmp_path) as bot:
        agent = await judged_steps(bot, FAILED, FAILED)
        await bot.command("reason", f"{agent.turns[0]} it did not look")
        await bot.rated(8)
        await bot.train()
        found = await items(bot)
        assert agent.turns[0] not in found
        assert agent.turns[1] in found


async def test_what_was_said_before_a_reset_is_judged_by_nobody_after_it(tmp_path: Path) -> None:
    async with judged_bot(tmp_path) as bot:
        agent = Agent(bot)
        first = await agent.step([user("Mend it.")], "I look.", "a")
        await agent.step([tool(FAILED)], "It did not work.")
        await past(bot, 5)
        await bot.command("reset")
        await bot.command("reset", "yes")
        await look(bot)
        assert await bot.store.read(lambda db: judgements.labels(db, first)) == {}


async def test_a_quarantine_leaves_out_what_was_judged_in_it(tmp_path: Path) -> None:
    async with judged_bot(tmp_path) as bot:
        agent = await judged_steps(bot, FAILED)
        await bot.rated(8)
        await bot.train()
        await bot.store.write(lambda db: db.execute("UPDATE events SET received_at = received_at - 9e5"))
        yesterday = datetime.fromtimestamp(bot.app.clock.now() - 86400)  # noqa: DTZ006  as its owner types it
        await bot.command("rollback", f"since {yesterday:%Y-%m-%d}")
        told = await bot.command("rollback", f"since {yesterday:%Y-%m-%d} yes")
        assert told.startswith("0 ratings since"), "it lies in it, and no rating does"
        assert (await bot.app.registry.row(1)).tainted
        assert await bot.store.read(lambda db: judgements.labels(db, agent.turns[0])) == {}
        counts = (await bot.status())["judged"]
        assert (counts["good"], counts["bad"]) == (0, 0), "nothing of it is shown as if it counted"
        assert "judged" not in await bot.command("history")


async def test_it_is_shown_apart(tmp_path: Path) -> None:
    async with judged_bot(tmp_path) as bot:
        agent = await judged_steps(bot, FAILED, PASSED, "a.py")
        told = await bot.command("status")
        assert "judged by rule, and rated by nobody: 1 good, 1 bad, 1 neither" in told
        assert (await bot.status())["judged"]["good"] == 1
        history = await bot.command("history")
        [line] = [line for line in history.splitlines() if line.startswith(agent.turns[0])]
        assert "judged 👎" in line
        await bot.rated(8)
        await bot.train()
        why = await bot.command("why")
        assert "It learnt from 6 rated answers (3 good, 3 bad; 2 more were judged, not rated" in why


async def test_an_export_keeps_it_apart_from_ratings(tmp_path: Path) -> None:
    async with judged_bot(tmp_path) as bot:
        await judged_steps(bot, FAILED)
        await bot.command("export")
        files = list((tmp_path / "bot" / "exports").glob("*"))
        assert all("judge:" not in file.read_text() for file in files)


# -- corrections


@contextlib.asynccontextmanager
async def corrected_bot(
    home: Path, said: str, *, objective: str = "hybrid"
) -> AsyncGenerator[tuple[Bot, str, str]]:
    """A bot that has answered a question, was told `said`, and has answered that; both answers' turns."""
    async with (
        judge_server(says=["bad"]) as server,
        judged_bot(
            home, judge={"by": "server", "url": server.url, "model": "m"}, settings={"objective": objective}
        ) as bot,
    ):
        asked = await bot.say("Tell me of the sea.")
        then = await bot.say(said)
        await look(bot)
        await bot.rated(8)
        yield bot, asked.turn, then.turn


async def hints(bot: Bot, folder: Path, turn: str) -> list[dict[str, Any]]:
    """What a training of what can be taken now reads with an answer."""
    p = bot.app
    _, found = await bot.store.read(
        lambda db: batch.take(db, batch.usual(p, Screening(p.filtering), parent=0))
    )
    job = await make_job(p, p.registry, run=1, parent=0, items=found, folder=folder)
    [item] = [item for item in job["items"] if item["id"] == turn]
    return item["hindsight"]


async def test_a_correction_is_read_with_the_answer_that_it_corrects(tmp_path: Path) -> None:
    async with corrected_bot(tmp_path, "No, shorter please!") as (bot, turn, _):
        [hint] = await hints(bot, tmp_path / "job", turn)
        assert hint == {"text": "No, shorter please!", "weight": 0.5}, "as the judgement weighs"


@pytest.mark.parametrize("said", [" TELL me of the sea. ", "no " * 101])
async def test_the_same_again_and_a_long_text_are_no_corrections(tmp_path: Path, said: str) -> None:
    async with corrected_bot(tmp_path, said) as (bot, turn, _):
        assert await hints(bot, tmp_path / "job", turn) == []


async def test_ratings_alone_read_no_correction(tmp_path: Path) -> None:
    async with corrected_bot(tmp_path, "No, shorter!", objective="tapered") as (bot, turn, _):
        assert await hints(bot, tmp_path / "job", turn) == []


async def test_a_correction_ends_with_its_message(tmp_path: Path) -> None:
    async with corrected_bot(tmp_path, "No, shorter!") as (bot, turn, then):
        await bot.train()
        assert (await items(bot))[turn][0] == "train"
        assert "1 with what was written next" in await bot.command("why")
        assert await bot.store.read(lambda db: objections.changed_items(db, 1)) == []
        await bot.store.write(lambda db: db.execute("DELETE FROM turns WHERE id = ?", (then,)))
        assert await bot.store.read(lambda db: objections.changed_items(db, 1)) == [turn]


# -- episodes


async def credits(bot: Bot) -> dict[str, float]:
    return dict(await rows(bot.store, "SELECT turn, value FROM judgements WHERE credit_of IS NOT NULL"))


async def test_an_outcome_at_the_end_counts_for_the_steps_before(tmp_path: Path) -> None:
    async with judged_bot(tmp_path) as bot:
        agent = await judged_steps(bot, "a.py", FAILED, "b.py")
        await bot.command("good", agent.turns[-1])
        await look(bot)
        first, failed, third, _ = agent.turns
        assert await credits(bot) == {first: 1, third: 1}, "what was judged by itself stays so"
        await bot.rated(7)
        await bot.train()
        found = await items(bot)
        assert found[first][1:3] == (1.0, 0.5)
        assert found[failed][1:3] == (-1.0, 0.5)


async def taught_by_the_end(bot: Bot, rater: str = "loopback:owner") -> tuple[str, str]:
    """A step that a version has learnt from, and the end of its episode, which `rater` called good.

    The version has not learnt from the end itself: so no weight is its own.
    """
    first, last = (await judged_steps(bot, "a.py")).turns
    await bot.command("good", last)
    for table in ("events", "labels"):
        said = f"UPDATE {table} SET rater = ? WHERE turn = ?"
        await bot.store.write(lambda db, said=said: db.execute(said, (rater, last)))
    await look(bot)
    await bot.rated(8)
    await bot.train()
    assert first in await items(bot)
    held_out = "UPDATE run_items SET split = 'held_out' WHERE turn = ?"
    await bot.store.write(lambda db: db.execute(held_out, (last,)))
    return first, last


async def test_what_the_end_came_to_is_taken_back_with_it(tmp_path: Path) -> None:
    async with judged_bot(tmp_path) as bot:
        first, last = await taught_by_the_end(bot)
        await bot.command("bad", last)
        assert (await bot.app.registry.row(1)).tainted
        assert await bot.store.read(lambda db: judgements.labels(db, first)) == {}
        await look(bot)
        assert await bot.store.read(lambda db: judgements.labels(db, first)) == {"judge:episode": -1}


async def test_forgetting_who_rated_the_end_takes_its_steps_out_of_the_weights(tmp_path: Path) -> None:
    async with judged_bot(tmp_path) as bot:
        first, _ = await taught_by_the_end(bot, "loopback:rater")
        await bot.command("forget", "loopback:rater")
        told = await bot.command("forget", "loopback:rater yes")
        assert told.startswith("0 answers, 1 rating deleted. v1 was trained on them")
        assert await bot.store.read(lambda db: judgements.labels(db, first)) == {}


async def claimed(bot: Bot) -> set[str]:
    """What a run would take now, with a weight."""
    p = bot.app
    _, found = await bot.store.read(
        lambda db: batch.take(db, batch.usual(p, Screening(p.filtering), parent=0))
    )
    return {item.turn for item in found if item.weight}


async def rated_by_another(bot: Bot) -> set[str]:
    """Answers that the rater has rated, in a channel."""
    await bot.command("enable", channel="#team")
    made = [await bot.say(f"question {number}", user="rater", channel="#team") for number in range(8)]
    for answer in made:
        await bot.react(answer, "👎", user="rater")
    return {answer.turn for answer in made}


async def test_who_is_left_out_of_a_round_credits_no_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two who rate, the one who has called the end good."""
    async with judged_bot(tmp_path, on_alarm="leave_out") as bot:
        first, last = (await judged_steps(bot, "a.py")).turns
        await bot.command("good", last)
        await look(bot)
        theirs = await rated_by_another(bot)
        assert {first, last} <= await claimed(bot)

        async def alarmed(db: Any, scope: str) -> list[Any]:
            return [SimpleNamespace(rater="loopback:owner")]

        monkeypatch.setattr(contradictions, "alarmed", alarmed)
        assert await claimed(bot) == theirs


async def test_who_is_outvoted_credits_no_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with judged_bot(tmp_path) as bot:
        first, last = (await judged_steps(bot, "a.py")).turns
        await bot.command("good", last)
        await look(bot)
        theirs = await rated_by_another(bot)
        assert {first, last} <= await claimed(bot)
        monkeypatch.setattr(claims, "outvoted", lambda *_: {"loopback:owner"})
        assert await claimed(bot) == theirs


async def test_earlier_steps_may_count_for_less(tmp_path: Path) -> None:
    async with judged_bot(tmp_path, judge={"by": "rule", "episodes": "discounted"}) as bot:
        agent = await judged_steps(bot, "a.py", "b.py")
        await bot.command("bad", agent.turns[-1])
        await look(bot)
        made = await credits(bot)
        assert [round(made[turn], 6) for turn in agent.turns[:2]] == [-0.81, -0.9]
        await bot.rated(8)
        await bot.train()
        found = await items(bot)
        assert [round(found[turn][2], 6) for turn in agent.turns[:2]] == [0.405, 0.45]
        assert {found[turn][1] for turn in agent.turns[:2]} == {-1.0}


async def test_an_episode_counts_for_nothing_where_that_is_off_or_it_goes_on(tmp_path: Path) -> None:
    async with judged_bot(tmp_path, judge={"by": "rule", "episodes": "off"}) as bot:
        agent = await judged_steps(bot, "a.py")
        await bot.command("good", agent.turns[-1])
        await look(bot)
        assert await credits(bot) == {}
    async with judged_bot(tmp_path / "on") as bot:
        agent = await judged_steps(bot, "a.py", "b.py")
        await bot.command("good", agent.turns[1])
        await look(bot)
        assert await credits(bot) == {}, "it is amid the work"


async def test_the_next_message_after_an_episode_counts_for_its_steps(tmp_path: Path) -> None:
    async with (
        judge_server(says=["bad"]) as server,
        judged_bot(tmp_path, judge={"by": "server", "url": server.url, "model": "m"}) as bot,
    ):
        agent = await judged_steps(bot, "a.py")
        await agent.step([user("That is not what I wanted.")], "Sorry.")
        await look(bot)
        first, last, _ = agent.turns
        assert server.data["request"] == "Mend the tests."
        assert await credits(bot) == {first: -1}
        await bot.command("good", last)
        assert await bot.store.read(lambda db: judgements.labels(db, first)) == {}
        await past(bot, 10)
        await look(bot)
        assert await credits(bot) == {first: 1}, "what a person says of it wins there, too"
