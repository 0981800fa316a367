# SPDX-License-Identifier: Apache-2.0
"""What raters say beside a rating: what a run takes of it, and that it ends where ratings end."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from goodbot import ObjectiveSpec, hookimpl
from goodbot.api.events import OrderKey, RatingEvent, RatingKind
from goodbot.api.hindsight import CHIPS
from goodbot.api.rewards import RewardPolicy
from goodbot.daemon.loopback import Answer
from goodbot.learning.rating_quality import contradictions
from goodbot.learning.training import batch
from goodbot.learning.training.claims import claim
from goodbot.learning.training.filtering import Screening
from goodbot.learning.training.job_spec import make_job
from goodbot.store import Store, news, objections, progress, runs, words
from goodbot.store.training_pool import Candidate
from goodbot.store.words import Word
from goodbot_training.job.types import Job, RatedSample
from goodbot_training.objectives.rewards import binary

from tests.core.builders import CHANNEL, OWNER, Bot, open_bot, rows, turn
from tests.core.learning.evaluation.asking import DAY, Later
from tests.security.test_linking import link

HYBRID: dict[str, Any] = {"settings": {"objective": "hybrid"}}
REASON = "the unit is missing"
TEAM = "#team"


async def items_of(bot: Bot, home: Path) -> list[RatedSample]:
    """What the child of a training that begins now would get."""
    core = bot.app
    _, items = await bot.store.read(
        lambda db: batch.take(db, batch.usual(core, Screening(core.filtering), parent=0))
    )
    job = await make_job(core, core.registry, run=1, parent=0, items=items, folder=home / "job")
    parsed = Job.parse({**json.loads(json.dumps(job)), "settings": {}})
    assert not parsed.refused
    return list(parsed.items)


async def job_of(bot: Bot, home: Path) -> dict[str, str]:
    """Turn → the words about it that are read beside it."""
    items = await items_of(bot, home)
    return {item.id: "\n".join(one.text for one in item.hindsight) for item in items if item.hindsight}


async def answers(bot: Bot, count: int = 8, **fields: Any) -> list[Answer]:
    """Bad ones, none of which is held out."""
    made = [await bot.say(f"question {n}", **fields) for n in range(count)]
    for answer in made:
        await bot.react(answer, "👎", user=fields.get("user", "owner"))
    return made


async def taken(bot: Bot) -> dict[str, list[list[Any]]]:
    found = await rows(bot.store, "SELECT turn, words FROM run_items ORDER BY run, position")
    return {turn: json.loads(words) for turn, words in found if words != "[]"}


async def changed(bot: Bot) -> list[str]:
    """What the first run has claimed and does not stand any more."""
    store: Store = bot.store
    return await store.read(lambda db: objections.changed_items(db, 1))


def without_held_out(home: Path, **changes: Any) -> Any:
    given: dict[str, Any] = {**HYBRID, **changes}
    return open_bot(home, held_out=0, **given)


async def test_a_run_takes_what_was_said_of_its_answers(tmp_path: Path) -> None:
    async with without_held_out(tmp_path) as bot:
        first, second, third, *_ = await answers(bot)
        await bot.chat.comment(first, REASON)
        await bot.chat.comment(second, "It is far.", better=True)
        await bot.chat.comment(second, "It is 4 km.\n- there", better=True)
        await bot.chat.again(third, "long")
        found = await job_of(bot, tmp_path)
        assert found == {first.turn: REASON, third.turn: CHIPS["long"]}


async def test_a_better_answer_is_learnt_as_an_answer(tmp_path: Path) -> None:
    """The last one, to the question that was asked; two have rated it, so its author has half of it."""
    async with without_held_out(tmp_path) as bot:
        await bot.command("enable", channel=TEAM)
        first, *_ = await answers(bot, channel=TEAM)
        await bot.react(first, "👎", user="rater")
        await bot.chat.comment(first, "It is far.", better=True)
        assert len(await shown(bot, tmp_path)) == 1
        await bot.chat.comment(first, "It is 4 km.\n- there", user="rater", better=True)
        [found] = await shown(bot, tmp_path)
        [rated] = [item for item in await items_of(bot, tmp_path) if item.id == first.turn]
        assert found.messages == rated.messages
        assert (found.response, found.reward, found.weight) == ("It is 4 km.\n- there", 1.0, 0.5)
        assert (found.version, found.split, found.captured) == (None, "train", False)
        assert not rated.demonstration
        await bot.command("undo", first.turn, channel=TEAM, user="rater")
        assert [one.response for one in await shown(bot, tmp_path)] == ["It is far."]


@pytest.mark.parametrize(("stars", "weighs"), [("1", [1.0]), ("2", [0.5]), ("3", [])])
async def test_a_better_answer_weighs_no_more_than_the_rating_that_it_came_with(
    tmp_path: Path, stars: str, weighs: list[float]
) -> None:
    async with without_held_out(tmp_path, reward="ordinal") as bot:
        first, *_ = await answers(bot)
        await bot.command("stars", f"{stars} {first.turn}")
        await bot.chat.comment(first, "It is 4 km.", better=True)
        assert [one.weight for one in await shown(bot, tmp_path)] == weighs


async def test_the_gate_asks_no_question_twice_for_its_better_answer(tmp_path: Path) -> None:
    async with without_held_out(tmp_path) as bot:
        first, *_ = await answers(bot)
        await bot.chat.comment(first, "It is 4 km.", better=True)
        await bot.train()
        store: Store = bot.store
        items = await store.read(lambda db: progress.items(db, 1))
        job = await make_job(bot.app, bot.app.registry, run=1, parent=0, items=items, folder=tmp_path / "job")
        assert (len(job["items"]), len(job["anchors"])) == (9, 8)


def test_words_that_are_to_weigh_nothing_are_not_taken() -> None:
    plugins = SimpleNamespace(objectives=dict)
    for weight, takes in ((0.0, False), (0.5, True)):
        core: Any = SimpleNamespace(
            settings={"objective": "hybrid", "hindsight_weight": weight}, plugins=plugins
        )
        assert batch.takes_words(core) is takes


async def shown(bot: Bot, home: Path) -> list[RatedSample]:
    """The better answers of the round."""
    return [item for item in await items_of(bot, home) if item.demonstration]


async def test_what_is_held_out_teaches_nothing(tmp_path: Path) -> None:
    async with open_bot(tmp_path, **HYBRID) as bot:
        made = await bot.rated(8)
        for answer in made:
            await bot.chat.comment(answer, REASON)
        await bot.train()
        split = dict(await rows(bot.store, "SELECT turn, split FROM run_items"))
        assert set(await taken(bot)) == {turn for turn, which in split.items() if which == "train"}
        assert len(await taken(bot)) == 6


async def test_the_default_objective_takes_none(tmp_path: Path) -> None:
    async with without_held_out(tmp_path, settings={}) as bot:
        first, *_ = await answers(bot)
        await bot.chat.comment(first, REASON)
        assert await job_of(bot, tmp_path) == {}
        await bot.train()
        assert await taken(bot) == {}


async def test_only_who_rated_an_answer_is_heard_and_a_chip_of_who_calls_it_bad(tmp_path: Path) -> None:
    async with without_held_out(tmp_path) as bot:
        await bot.command("enable", channel=TEAM)
        first, second, *_ = await answers(bot, channel=TEAM)
        await bot.chat.comment(first, "I have not rated it", user="rater")
        await bot.chat.comment(first, "no rater at all", user="talker")
        await bot.chat.again(second, "long")
        assert await job_of(bot, tmp_path) == {second.turn: CHIPS["long"]}
        await bot.react(first, "👎", user="rater")
        await bot.command("good", second.turn)  # a reaction would speak of the answer in its place
        assert (await bot.labels(second)) == {"loopback:owner": 1.0}
        found = await job_of(bot, tmp_path)
        assert found == {first.turn: "I have not rated it"}


async def test_words_weigh_what_is_their_raters_of_an_answer(tmp_path: Path) -> None:
    """Two have rated it: who alone says something says half, and what both say is read one by one."""
    async with without_held_out(tmp_path) as bot:
        await bot.command("enable", channel=TEAM)
        first, second, *_ = await answers(bot, channel=TEAM)
        for answer in (first, second):
            await bot.react(answer, "👎", user="rater")
            await bot.chat.comment(answer, "of the rater", user="rater")
        await bot.chat.comment(second, REASON)
        await bot.train()
        found = await taken(bot)
        assert [word[1:2] + word[4:] for word in found[first.turn]] == [["loopback:rater", 0.5]]
        store: Store = bot.store
        items = await store.read(lambda db: progress.items(db, 1))
        job = await make_job(bot.app, bot.app.registry, run=1, parent=0, items=items, folder=tmp_path / "job")
        said = {item["id"]: item["hindsight"] for item in job["items"]}
        assert said[first.turn] == [{"text": "of the rater", "weight": 0.5}]
        assert said[second.turn] == [{"text": "of the rater", "weight": 0.5}, {"text": REASON, "weight": 0.5}]


def test_who_is_held_to_a_share_of_a_round_is_held_to_it_with_words() -> None:
    """On answers of their own, and on those that others have rated too, where only they say something."""
    labels: list[dict[str, float]] = [{"a": -1.0}] * 25 + [{"a": -1.0, "b": -1.0}] * 10 + [{"c": 1.0}] * 5
    candidates = [
        Candidate(turn=turn(f"t{n}"), labels=given, held_out_before=False, seq=n)
        for n, given in enumerate(labels)
    ]
    said = {f"t{n}": [Word(kind="comment", rater="a", at=n)] for n in range(40)}
    binary_policy = RewardPolicy(name="binary", fn=binary)
    items = claim(candidates, binary_policy, held_out_share=0.0, rater_share=0.25, said=said)
    weights = [sum(word.weight for word in item.words) for item in items]
    bits = sum(item.weight for item in items)
    assert items[0].weight < 0.2, "held back"
    assert weights[0] == items[0].weight
    assert weights[25] == pytest.approx(items[0].weight / 2)
    assert weights[25] < items[25].weight / 4, "the rest of its weight is the other's"
    assert weights[35:] == [0.0] * 5
    assert sum(weights) <= bits / 3 + 1e-9


async def test_better_answers_are_a_part_of_what_their_author_may_teach(tmp_path: Path) -> None:
    """Three have rated as many answers each; who writes a better one to each of theirs still has a third."""
    async with without_held_out(tmp_path) as bot:
        await bot.command("enable", channel=TEAM)
        await bot.command("people", "grant rater loopback:third")
        by_rater = {
            user: await answers(bot, 6, channel=TEAM, user=user) for user in ("owner", "rater", "third")
        }
        assert {item.weight for item in await items_of(bot, tmp_path)} == {1.0}
        for n, answer in enumerate(by_rater["rater"]):
            await bot.chat.comment(answer, f"It is {n} km.", user="rater", better=True)
        items = await items_of(bot, tmp_path)
        theirs = {answer.turn for answer in by_rater["rater"]}
        weights = [item.weight for item in items if item.id.removesuffix("+better") in theirs]
        assert weights == [0.5] * 12, "its rating and the better answer alike"
        assert sum(weights) == pytest.approx(sum(item.weight for item in items) / 3)
        for n, answer in enumerate(by_rater["owner"] + by_rater["third"]):
            await bot.chat.comment(answer, f"{n} km.", user="owner" if n < 6 else "third", better=True)
        assert {item.weight for item in await items_of(bot, tmp_path)} == {1.0}, "now all have as much to say"


def test_of_many_who_say_something_the_first_are_heard() -> None:
    """Each costs a pass over the answer."""
    said = [Word(kind="comment", rater=who, at=n) for n, who in enumerate("abacde")]
    found = words.heard(said, dict.fromkeys("abcde", -1.0), 1.0)
    assert [word.at for word in found] == [0, 1, 2, 3]
    assert {word.weight for word in found} == {0.2}


async def test_whose_rating_a_run_leaves_out_is_not_heard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The alarm and the vote against somebody take the label; the words go with it."""
    async with without_held_out(tmp_path, on_alarm="leave_out") as bot:
        await bot.command("enable", channel=TEAM)
        first, *_ = await answers(bot, channel=TEAM)
        await bot.react(first, "👎", user="rater")
        await bot.chat.comment(first, "of the rater", user="rater")
        assert "of the rater" in (await job_of(bot, tmp_path))[first.turn]

        async def alarmed(db: Any, scope: str) -> list[Any]:
            return [SimpleNamespace(rater="loopback:rater")]

        monkeypatch.setattr(contradictions, "alarmed", alarmed)
        assert await job_of(bot, tmp_path) == {}


async def test_an_undo_takes_the_words_of_an_answer(tmp_path: Path) -> None:
    """Whoever says 👎 again after that has said no more than that."""
    async with without_held_out(tmp_path) as bot:
        first, second, *_ = await answers(bot)
        await bot.chat.comment(first, REASON)
        await bot.chat.again(second, "long")
        assert set(await job_of(bot, tmp_path)) == {first.turn, second.turn}
        for answer in (first, second):
            await bot.command("undo", answer.turn)
            assert await bot.labels(answer) == {}
            await bot.command("bad", answer.turn)
            assert await bot.labels(answer) == {"loopback:owner": -1.0}
        assert await job_of(bot, tmp_path) == {}


async def took_back(bot: Bot, answer: Answer) -> None:
    """Only the reason: the thumb stays."""
    [(event,)] = await rows(
        bot.store, "SELECT event_id FROM events WHERE turn = ? AND kind = 'comment'", (answer.turn,)
    )
    back = RatingEvent(
        event_id="back",
        order=OrderKey(10**14),
        user=OWNER,
        channel=CHANNEL,
        kind=RatingKind.RETRACT,
        turn=answer.turn,
        retracts=event,
    )
    await bot.chat.host.submit([back])


async def test_a_version_that_learnt_a_word_that_is_taken_back_is_replaced(tmp_path: Path) -> None:
    async with without_held_out(tmp_path) as bot:
        first, second, *_ = await answers(bot)
        await bot.chat.comment(first, REASON)
        await bot.chat.comment(second, "stays")
        await bot.train()
        assert set(await taken(bot)) == {first.turn, second.turn}
        before = await bot.labels(first)
        await took_back(bot, first)
        assert await bot.labels(first) == before
        row = await bot.app.registry.row(1)
        assert row.tainted == runs.CHANGED
        await bot.settle()
        again = await rows(bot.store, "SELECT turn, words FROM run_items WHERE run = 2 AND words <> '[]'")
        assert [turn for turn, _ in again] == [second.turn]


async def test_what_is_added_later_takes_no_version_back(tmp_path: Path) -> None:
    async with without_held_out(tmp_path) as bot:
        first, *_ = await answers(bot)
        await bot.chat.comment(first, REASON)
        await bot.train()
        await bot.chat.comment(first, "and more")
        await bot.chat.comment(first, "It is 4 km.", better=True)
        assert await changed(bot) == []
        assert not (await bot.app.registry.row(1)).tainted


async def test_a_run_under_way_starts_over_without_the_word(tmp_path: Path) -> None:
    async with without_held_out(tmp_path) as bot:
        first, *_ = await answers(bot)
        await bot.chat.comment(first, REASON)
        await bot.start_training()
        await took_back(bot, first)
        assert await changed(bot) == [first.turn]
        await bot.finish_training()
        await bot.settle()
        assert await taken(bot) == {}


async def test_an_interrupted_run_goes_on_with_the_same_words(tmp_path: Path) -> None:
    async with without_held_out(tmp_path) as bot:
        first, *_ = await answers(bot)
        await bot.chat.comment(first, REASON)
        await bot.train()
        await bot.chat.comment(first, "said later")
        store: Store = bot.store
        items = await store.read(lambda db: progress.items(db, 1))
        job = await make_job(bot.app, bot.app.registry, run=1, parent=0, items=items, folder=tmp_path / "job")
        assert [item["hindsight"] for item in job["items"] if item["hindsight"]] == [
            [{"text": REASON, "weight": 1.0}]
        ]


@pytest.mark.parametrize("said", ["comment", "chip"])
async def test_a_quarantine_of_a_word_alone_replaces_what_learnt_it(tmp_path: Path, said: str) -> None:
    """The thumb came before the time that is not trusted."""
    clock = Later()
    async with without_held_out(tmp_path, clock=clock) as bot:
        first, *_ = await answers(bot)
        clock.ahead += 2 * DAY
        if said == "comment":
            await bot.chat.comment(first, REASON)
        else:
            await bot.chat.again(first, "long")

            async def pressed_now(db: Any) -> None:
                await db.execute("UPDATE retries SET time_ms = ?", (int(1000 * clock.now()),))

            await bot.store.write(pressed_now)
        assert len(await job_of(bot, tmp_path)) == 1
        await bot.train()
        clock.ahead += 2 * DAY
        when = datetime.fromtimestamp(clock.now() - 3 * DAY, UTC).isoformat()
        await bot.command("rollback", f"since {when}")
        await bot.command("rollback", f"since {when} yes")
        assert (await bot.app.registry.row(1)).tainted
        assert await bot.labels(first) == {"loopback:owner": -1.0}
        assert await job_of(bot, tmp_path) == {}


async def test_b1_a_chip_is_taken_back_under_the_person_of_now(tmp_path: Path) -> None:
    """Accounts that are linked while a run trains speak for one person from then on."""
    async with without_held_out(tmp_path) as bot:
        await bot.command("enable", channel=TEAM)
        first, *_ = await answers(bot, channel=TEAM, user="rater")
        await bot.chat.again(first, "long", user="rater")
        await bot.start_training()
        assert first.turn in await taken(bot)
        assert "one person now" in await link(bot)
        await bot.command("undo", first.turn, channel=TEAM, user="rater")
        await bot.react(first, "👎", user="rater")
        assert await changed(bot) == [first.turn]
        bot.fake.set(train="ok")
        bot.fake.go()


async def test_who_is_forgotten_is_in_no_runs_words(tmp_path: Path) -> None:
    async with without_held_out(tmp_path) as bot:
        await bot.command("enable", channel=TEAM)
        first, *_ = await answers(bot, channel=TEAM)
        await bot.react(first, "👎", user="rater")
        await bot.chat.comment(first, REASON, user="rater")
        await bot.train()
        assert "loopback:rater" in json.dumps(await taken(bot))
        await bot.command("forget", "me", user="rater")
        await bot.command("forget", "me yes", user="rater")
        await bot.settle()
        assert (await bot.app.registry.row(1)).tainted
        assert "loopback:rater" not in json.dumps(await taken(bot))
        assert await job_of(bot, tmp_path) == {}


async def test_why_says_what_more_than_ratings_was_learnt(tmp_path: Path) -> None:
    async with without_held_out(tmp_path) as bot:
        first, second, third, *_ = await answers(bot)
        for answer in (first, second):
            await bot.chat.comment(answer, REASON)
        await bot.chat.comment(first, "again")
        await bot.chat.comment(first, "It is 4 km.", better=True)
        await bot.chat.again(third, "long")
        await bot.train()
        text = await bot.command("why")
        assert (
            "It learnt more than the rating of some answers: "
            "1 with what was wrong, 2 with a reason, 1 with a better answer.\n" in text
        )
        assert REASON not in text
        store: Store = bot.store
        made_of = await store.read(lambda db: news.material(db, [1]))
        assert made_of.words == {"better": 1, "chip": 1, "comment": 2}


async def test_the_run_remembers_where_the_words_are_not_what_they_say(tmp_path: Path) -> None:
    async with without_held_out(tmp_path) as bot:
        first, *_ = await answers(bot)
        await bot.chat.comment(first, REASON)
        await bot.train()
        assert REASON not in json.dumps(await taken(bot))
        [[kind, rater, at, hint, weight]] = (await taken(bot))[first.turn]
        assert (kind, rater, hint, weight) == ("comment", "loopback:owner", "", 1.0)
        assert await rows(bot.store, "SELECT text FROM events WHERE seq = ?", (at,)) == [(REASON,)]


@pytest.mark.parametrize("hindsight", [True, False])
async def test_a_plugins_objective_says_whether_it_takes_words(tmp_path: Path, hindsight: bool) -> None:
    class Gentle:
        @hookimpl
        def register_objective(self) -> ObjectiveSpec:
            return ObjectiveSpec(name="gentle", factory="gentle:objective", hindsight=hindsight)

    async with without_held_out(tmp_path, extra=(Gentle(),), settings={"objective": "gentle"}) as bot:
        first, *_ = await answers(bot)
        await bot.chat.comment(first, REASON)
        assert bool(await job_of(bot, tmp_path)) is hindsight
