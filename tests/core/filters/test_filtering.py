# SPDX-License-Identifier: Apache-2.0
"""What filters name no training takes: it stays stored, is counted no more, and people see why."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from goodbot import hookimpl
from goodbot.api.content_filter import ContentFilter, ContentFilterSpec, FilterCase
from goodbot.api.rated import RatedWanted
from goodbot.api.sentences import in_words
from goodbot.base.errors import ConfigError, GoodbotError
from goodbot.daemon.loopback import Answer
from goodbot.features.filters import plugin as filters
from goodbot.learning.training import batch, opening
from goodbot.learning.training.filtering import Screening
from goodbot.store import turns

from tests.core.builders import OWNER, Bot, check, open_bot, rows, until
from tests.core.test_stars import claimed
from tests.support import patience

WORDS: Mapping[str, Any] = {"words": {"block": ["acme", "house of cards"]}}
BOTH: Mapping[str, Any] = {**WORDS, "personal": {}}
MAIL = "ada.lovelace" + "@" + "mail.de"


def filtered_bot(home: Path, on: Mapping[str, Any] = BOTH, **options: Any) -> Any:
    extra = (filters, *options.pop("extra", ()))
    return open_bot(home, extra=extra, sections={"filters": on}, **options)


async def rated(bot: Bot, *questions: str) -> list[Answer]:
    """The answers repeat the question."""
    made = [await bot.say(question) for question in questions]
    for number, answer in enumerate(made):
        await bot.react(answer, "👍" if number % 2 == 0 else "👎")
    return made


async def trained_on(bot: Bot) -> set[str]:
    return {turn for (turn,) in await rows(bot.store, "SELECT turn FROM run_items")}


async def aside(bot: Bot) -> dict[str, str]:
    return dict(await rows(bot.store, "SELECT turn, reason FROM set_aside"))


async def test_without_a_section_nothing_is_left_out(tmp_path: Path) -> None:
    async with filtered_bot(tmp_path, {}) as bot:
        await rated(bot, f"Write to {MAIL}", "ACME")
        await bot.rated(6)
        assert (await bot.train()).state == "activated"
        assert len(await trained_on(bot)) == 8
        assert await aside(bot) == {}


async def test_a_training_goes_without_what_filters_name_and_says_so(tmp_path: Path) -> None:
    async with filtered_bot(tmp_path) as bot:
        named = await rated(bot, f"Write to {MAIL}", f"Or to {MAIL}", "Who is ACME?", f"{MAIL} of Acme")
        good = await bot.rated(8)
        assert (await bot.status())["ratings"] == 12, "filters are asked when a training picks"
        assert (await bot.train()).state == "activated"
        assert await trained_on(bot) == {answer.turn for answer in good}
        found = ("email", "email", "word", "email, word")
        assert await aside(bot) == {one.turn: of for one, of in zip(named, found, strict=True)}
        told = "e-mail address (2); e-mail address, blocked word (1); blocked word (1)"
        assert f"filters leave 4 answers out of training: {told}" in await bot.command("status")
        assert f"filters leave 4 answers out of training: {told}" in await bot.command("why")
        assert (await bot.status())["ratings"] == 2 == await claimed(bot), "those that were held out"
        counted = "SELECT count(*) FROM turns WHERE rated = 2 AND id IN (SELECT turn FROM set_aside)"
        assert await rows(bot.store, counted) == [(4,)], "no rating reads them to count the others"
        for answer in named:
            assert await bot.labels(answer), "the rating stands"
        await check(bot)


async def test_the_page_of_ratings_and_a_new_rating_say_it(tmp_path: Path) -> None:
    async with filtered_bot(tmp_path) as bot:
        [named] = await rated(bot, f"Write to {MAIL}")
        await bot.rated(8)
        await bot.train()
        page = await bot.chat.host.rated(OWNER, RatedWanted(text=MAIL))
        [found] = page.answers
        assert found.why_not == "A filter keeps this answer out of training: e-mail address."
        learnt = await bot.chat.host.taught(replace(OWNER, language="de"), named.turn)
        assert learnt.told == "Ein Filter hält diese Antwort aus dem Training heraus: E-Mail-Adresse."
        said = await bot.command("bad", named.turn)
        assert "A filter keeps this answer out of training." in said
        assert "e-mail" not in said, "others may hear it"


async def test_what_was_found_is_told_to_owners_alone(tmp_path: Path) -> None:
    async with filtered_bot(tmp_path) as bot:
        await bot.command("enable", channel="#team")
        await rated(bot, f"Write to {MAIL}")
        await bot.rated(8)
        await bot.train()
        assert "e-mail address (1)" in await bot.command("why")
        for user, channel in (("rater", ""), ("rater", "#team"), ("owner", "#team")):
            for command in ("why", "status"):
                told = await bot.command(command, user=user, channel=channel)
                assert "v1" in told
                assert "e-mail" not in told


async def test_the_database_keeps_nothing_of_the_list_of_words(tmp_path: Path) -> None:
    """It may name what nobody shall read, and each answer that is left out has its settings beside it."""
    async with filtered_bot(tmp_path) as bot:
        await rated(bot, f"Write to {MAIL}")
        await bot.rated(8)
        await bot.train()
        kept = await rows(bot.store, "SELECT settings FROM runs UNION ALL SELECT settings FROM set_aside")
        assert len(kept) == 2
        assert "acme" not in str(kept)


async def test_a_dry_run_tells_beforehand_and_changes_nothing(tmp_path: Path) -> None:
    async with filtered_bot(tmp_path) as bot:
        await rated(bot, f"Write to {MAIL}")
        await bot.rated(8)
        told = await bot.command("train", "--dry-run")
        assert "filters leave 1 answer out of training: e-mail address (1)" in told
        assert "learns from 6 ratings" in told
        assert await aside(bot) == {}


async def test_where_too_little_is_left_nothing_trains_and_the_count_is_right(tmp_path: Path) -> None:
    async with filtered_bot(tmp_path, schedule="auto") as bot:
        await rated(bot, f"Write to {MAIL}")
        await bot.rated(6)
        assert (await bot.status())["ratings"] == 7
        await bot.rated(1)
        await until(lambda: aside(bot))
        assert await rows(bot.store, "SELECT 1 FROM runs") == []
        assert (await bot.status())["ratings"] == 7, "8 less the one"
        await bot.rated(1)
        await until(lambda: trained_on(bot))
        await bot.settle()
        assert len(await trained_on(bot)) == 8


async def test_all_that_is_named_is_nothing_to_train_on(tmp_path: Path) -> None:
    async with filtered_bot(tmp_path) as bot:
        await rated(bot, *(f"{MAIL} {number}" for number in range(8)))
        with pytest.raises(GoodbotError, match="filters have left 8 out"):
            await bot.train()
        assert (await bot.status())["ratings"] == 0


async def test_other_settings_let_them_in_and_train_retry_does_not(tmp_path: Path) -> None:
    async with filtered_bot(tmp_path) as bot:
        await rated(bot, "Who is ACME?", f"Write to {MAIL}")
        await bot.rated(8)
        await bot.train()
        assert "No training has left answers out" in await bot.command("train", "retry")
        assert len(await aside(bot)) == 2
    async with filtered_bot(tmp_path) as bot:
        assert len(await aside(bot)) == 2
    async with filtered_bot(tmp_path, WORDS) as bot:
        assert (await bot.status())["ratings"] == 4, "they are looked at anew"
        await bot.rated(6)
        await bot.train()
        assert list((await aside(bot)).values()) == ["word"]
    async with filtered_bot(tmp_path, {}) as bot:
        assert await aside(bot) == {}


async def test_a_run_that_other_filters_have_let_through_does_not_go_on(tmp_path: Path) -> None:
    async with filtered_bot(tmp_path, {}) as bot:
        [named] = await rated(bot, "Who is ACME?")
        await bot.rated(7)
        await bot.start_training()
        await bot.command("pause")
    async with filtered_bot(tmp_path) as bot:
        bot.fake.set(train="ok")
        await bot.command("resume")
        await bot.rated(1)
        await bot.train()
        last = await bot.last_run()
        found = await rows(bot.store, "SELECT turn FROM run_items WHERE run = ?", (last.id,))
        assert last.state == "activated"
        assert named.turn not in {turn for (turn,) in found}


async def test_what_raters_wrote_is_looked_at_where_it_would_be_learnt(tmp_path: Path) -> None:
    for objective, named in (("hybrid", 2), ("tapered", 0)):
        home = tmp_path / objective
        async with filtered_bot(home, settings={"objective": objective}) as bot:
            made = await bot.rated(10)
            await bot.chat.comment(made[1], f"Ask {MAIL} first")
            await bot.chat.comment(made[3], "House, of cards!", better=True)
            await bot.train()
            assert len(await aside(bot)) == named, objective


async def test_a_comment_that_is_taken_back_lets_its_answer_in(tmp_path: Path) -> None:
    async with filtered_bot(tmp_path, settings={"objective": "hybrid"}) as bot:
        made = await bot.rated(9)
        await bot.chat.comment(made[1], f"Ask {MAIL} first")
        await bot.train()
        assert set(await aside(bot)) == {made[1].turn}
        await bot.command("undo", made[1].turn)
        await bot.react(made[1], "👎")
        await bot.rated(6)
        await bot.train()
        assert await aside(bot) == {}
        assert made[1].turn in await trained_on(bot)


async def test_a_reason_goes_with_the_words_that_it_was_about(tmp_path: Path) -> None:
    """A claim that comes upon other words asks no filter; the answer waits, and is not set aside for it."""
    async with filtered_bot(tmp_path, settings={"objective": "hybrid"}) as bot:
        made = await bot.rated(9)
        await bot.chat.comment(made[1], f"Ask {MAIL} first")
        screening = Screening(bot.app.filtering)
        taking = batch.usual(bot.app, screening, parent=0)
        await screening.through(lambda: bot.store.snapshot(lambda db: batch.take(db, taking)))
        assert screening.left_out == {made[1].turn: "email"}
        await bot.command("undo", made[1].turn)
        await bot.react(made[1], "👎")
        _, items = await bot.store.read(lambda db: batch.take(db, taking))
        assert screening.left_out == {}
        assert made[1].turn not in {item.turn for item in items}, "nothing is known of it as it is now"


async def test_who_has_not_rated_and_what_came_before_keep_no_answer_out(tmp_path: Path) -> None:
    """Nothing of it would be learnt: words go with a rating, and of better answers the last counts."""
    async with filtered_bot(tmp_path, settings={"objective": "hybrid"}) as bot:
        await bot.command("enable", channel="#team")
        made = await bot.rated(10, channel="#team")
        await bot.chat.comment(made[1], f"Ask {MAIL} first", user="rater")
        await bot.chat.comment(made[3], f"Ask {MAIL}!", better=True)
        await bot.chat.comment(made[3], "Ask her!", better=True)
        await bot.chat.comment(made[5], "Ask her!", better=True)
        await bot.chat.comment(made[5], f"Ask {MAIL}!", better=True)
        await bot.train()
        assert set(await aside(bot)) == {made[5].turn}


async def test_what_is_not_rated_any_more_is_not_told_as_left_out(tmp_path: Path) -> None:
    async with filtered_bot(tmp_path) as bot:
        first, second = await rated(bot, f"Write to {MAIL}", f"Or to {MAIL}")
        await bot.rated(8)
        await bot.train()
        assert "filters leave 2 answers out" in await bot.command("status")
        await bot.command("undo", first.turn)
        assert "filters leave 1 answer out" in await bot.command("status")
        await bot.command("undo", second.turn)
        assert "filters leave" not in await bot.command("status")


async def test_a_dry_run_asks_anew_as_a_training_does(tmp_path: Path) -> None:
    async with filtered_bot(tmp_path, settings={"objective": "hybrid"}) as bot:
        made = await bot.rated(9)
        await bot.chat.comment(made[1], f"Ask {MAIL} first")
        await bot.train()
        await bot.command("undo", made[1].turn)
        await bot.react(made[1], "👎")
        await rated(bot, "Who is ACME?")
        told = await bot.command("train", "--dry-run")
        assert "filters leave 1 answer out of training: blocked word (1)" in told


async def test_a_run_that_starts_over_from_the_base_takes_nothing_that_filters_name(tmp_path: Path) -> None:
    async with filtered_bot(tmp_path) as bot:
        [named] = await rated(bot, f"Write to {MAIL}")
        await bot.rated(8)
        await bot.train()
        learnt = await bot.trained(1)
        undone = next(answer for answer in bot.answers if answer.turn in learnt)
        await bot.rated(8)
        await bot.start_training()
        await bot.command("undo", undone.turn)
        run = await bot.finish_training()
        assert (run.state, run.parent) == ("activated", 0), run.reason
        assert named.turn not in await trained_on(bot)
        await check(bot)


async def test_a_run_that_starts_over_keeps_answers_of_which_somebody_else_has_said_something_since(
    tmp_path: Path,
) -> None:
    """Filters were asked without the new rating, so about other words than those that it takes then."""
    async with filtered_bot(tmp_path, settings={"objective": "hybrid"}) as bot:
        await bot.command("enable", channel="#team")
        made = await bot.rated(8, channel="#team")
        await bot.start_training()
        await bot.react(made[1], "👎", user="rater")
        await bot.chat.comment(made[1], "Too long", user="rater")
        await bot.command("undo", made[0].turn, channel="#team")
        run = await bot.finish_training()
        assert run.state == "activated", run.reason
        assert await trained_on(bot) == {one.turn for one in made[1:]}
        await check(bot)


async def test_what_filters_name_takes_no_room_of_what_may_train(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run takes so much text at once; what waits behind it is looked at the next time."""
    monkeypatch.setattr(turns, "MOST", 1)  # so that it takes eight answers
    async with filtered_bot(tmp_path) as bot:
        await rated(bot, *(f"{MAIL} {number}" for number in range(10)))
        await bot.rated(8)
        with pytest.raises(GoodbotError, match="filters have left 8 out"):
            await bot.train()
        assert (await bot.train()).state == "activated"
        assert len(await trained_on(bot)) == 6
        assert len(await aside(bot)) == 10


async def test_no_answers_length_is_counted_twice(tmp_path: Path) -> None:
    """Whoever rates waits for the claim, and what waits for it may be long."""
    async with filtered_bot(tmp_path) as bot:
        await bot.rated(8)
        looked = await opening.looked_at(bot.app, parent=0, replay=False)
        assert set(looked.sizes) == {answer.turn for answer in bot.answers}
        looked.sizes.update(dict.fromkeys(looked.sizes, turns.MOST))  # what it believes it does not read
        taking = batch.usual(bot.app, looked, parent=0)
        few = replace(taking, config=replace(taking.config, min_ratings=5))
        counted, _ = await bot.store.read(lambda db: batch.take(db, few))
        assert counted == 5, "as many as it must"


# -- plugins


@dataclass(frozen=True, kw_only=True, slots=True)
class ShortSettings:
    """`[filters.short]`."""

    least: int = 3


class Short(ContentFilter):
    """Names what is short; of an answer about breaking it breaks."""

    def reasons(self, case: FilterCase) -> Sequence[str]:
        if "break" in case.question:
            raise ValueError("planted")
        return ["too few characters"] if len(case.question) < self.settings.least else []


class ShortPlugin:
    """Registers it."""

    @hookimpl
    def register_filter(self) -> ContentFilterSpec:
        return ContentFilterSpec(name="short", factory=f"{__name__}:Short", settings=ShortSettings)


async def test_a_plugin_has_filters_with_settings_of_their_own(tmp_path: Path) -> None:
    on = {"short": {"least": 5}}
    async with filtered_bot(tmp_path, on, extra=(ShortPlugin(),)) as bot:
        await rated(bot, "Hi")
        await bot.rated(8)
        await bot.train()
        assert list((await aside(bot)).values()) == ["too few characters"]


async def test_a_filter_that_breaks_lets_nothing_through(tmp_path: Path) -> None:
    async with filtered_bot(tmp_path, {"short": {}}, extra=(ShortPlugin(),)) as bot:
        await rated(bot, "Hi")
        await bot.rated(8)
        await bot.train()
        known = await aside(bot)
        await rated(bot, "break")
        await bot.rated(8)
        with pytest.raises(GoodbotError, match="the filter short has failed"):
            await bot.train()
        assert len(await rows(bot.store, "SELECT 1 FROM runs")) == 1
        assert await aside(bot) == known != {}


class Given(ContentFilter):
    """Gives what a test wants; while `gone` is not set it waits."""

    gives: Any = ()
    asked, gone = threading.Event(), threading.Event()

    def reasons(self, case: FilterCase) -> Sequence[str]:
        self.asked.set()
        assert self.gone.wait(patience(30))
        return self.gives


class GivenPlugin:
    """Registers it."""

    @hookimpl
    def register_filter(self) -> ContentFilterSpec:
        return ContentFilterSpec(name="given", factory=f"{__name__}:Given", settings=ShortSettings)


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Given]]:
    """The `Given` of one test."""
    monkeypatch.setattr(Given, "asked", threading.Event())
    monkeypatch.setattr(Given, "gone", threading.Event())
    monkeypatch.setattr(Given, "gives", ())
    yield Given
    Given.gone.set()


@pytest.mark.parametrize("gives", ["email", None, [5]])
async def test_a_filter_that_gives_no_list_of_texts_has_failed(
    tmp_path: Path, given: type[Given], gives: Any
) -> None:
    given.gives = gives
    given.gone.set()
    async with filtered_bot(tmp_path, {"given": {}}, extra=(GivenPlugin(),)) as bot:
        await bot.rated(8)
        with pytest.raises(GoodbotError, match="the filter given has failed"):
            await bot.train()
        assert await rows(bot.store, "SELECT 1 FROM runs") == []


@pytest.mark.parametrize(
    ("gives", "kept"), [([""], "given"), (["too\nlong\x1b[2J"], "too long"), (["x" * 1000], "x" * 80)]
)
async def test_a_reason_is_one_short_line(
    tmp_path: Path, given: type[Given], gives: list[str], kept: str
) -> None:
    given.gives = gives
    given.gone.set()
    async with filtered_bot(tmp_path, {"given": {}}, extra=(GivenPlugin(),)) as bot:
        await bot.rated(8)
        with pytest.raises(GoodbotError, match="filters have left 8 out"):
            await bot.train()
        assert set((await aside(bot)).values()) == {kept}


async def test_b8_while_a_filter_thinks_ratings_are_stored_and_a_training_can_be_stopped(
    tmp_path: Path, given: type[Given]
) -> None:
    async with filtered_bot(tmp_path, {"given": {}}, extra=(GivenPlugin(),)) as bot:
        made = await bot.rated(8)
        run = await bot.app.scheduler.start(in_words("a test"))
        await asyncio.to_thread(given.asked.wait, patience(10))
        assert bot.store._snapshots == 0, "it held a state of the store, whose log grew"
        await asyncio.wait_for(bot.react(made[1], "👍"), patience(10))
        assert await bot.labels(made[1])
        await asyncio.wait_for(bot.app.scheduler.stop(), patience(10))
        assert run.cancelled()
        given.gone.set()
        assert (await bot.train()).state == "activated"


@pytest.mark.parametrize("withdrawn", [False, True])
async def test_while_a_filter_thinks_about_a_run_that_starts_over_ratings_are_stored(
    tmp_path: Path, given: type[Given], withdrawn: bool
) -> None:
    """It was asked within the transaction that claims anew, and whoever rated waited for it."""
    async with filtered_bot(tmp_path, {"given": {}}, extra=(GivenPlugin(),)) as bot:
        given.gone.set()
        made = await bot.rated(8)
        if withdrawn:  # of the version before, so that all that is free is taken, too
            await bot.train()
            learnt = await bot.trained(1)
            undone = next(answer for answer in made if answer.turn in learnt)
            made = await bot.rated(8)
        else:
            undone = made[0]
        await bot.start_training()
        given.gone.clear()
        given.asked.clear()
        await bot.command("undo", undone.turn)
        ending = asyncio.create_task(bot.finish_training())
        await asyncio.to_thread(given.asked.wait, patience(10))
        assert bot.store._snapshots == 0
        await asyncio.wait_for(bot.react(made[2], "👍"), patience(10))
        assert not ending.done()
        given.gone.set()
        assert (await ending).state == "activated"
        await check(bot)


async def test_a_look_ahead_holds_nothing_while_a_filter_thinks_and_a_claim_asks_none(
    tmp_path: Path, given: type[Given]
) -> None:
    async with filtered_bot(tmp_path, {"given": {}}, extra=(GivenPlugin(),)) as bot:
        await bot.rated(8)
        screening = Screening(bot.app.filtering)
        taking = batch.usual(bot.app, screening, parent=0)
        counted, items = await bot.store.write(lambda db: batch.take(db, taking))
        assert (counted, items, given.asked.is_set()) == (0, (), False)
        looking = asyncio.create_task(bot.command("train", "--dry-run"))
        await asyncio.to_thread(given.asked.wait, patience(10))
        assert bot.store._snapshots == 0
        given.gone.set()
        assert "learns from 6 ratings" in await looking


async def test_what_comes_each_time_that_filters_have_been_asked_waits_for_the_next_training(
    tmp_path: Path, given: type[Given]
) -> None:
    given.gone.set()
    async with filtered_bot(tmp_path, {"given": {}}, extra=(GivenPlugin(),)) as bot:
        screening, looks = Screening(bot.app.filtering), 0
        taking = batch.usual(bot.app, screening, parent=0)

        async def look() -> int:
            nonlocal looks
            looks += 1
            await bot.rated(1)
            return (await bot.store.snapshot(lambda db: batch.take(db, taking)))[0]

        counted = await screening.through(look)
        assert (counted, looks) == (3, 4)


async def test_what_has_failed_is_not_tried_over_and_over_and_status_says_why(tmp_path: Path) -> None:
    async with filtered_bot(tmp_path, {"short": {}}, extra=(ShortPlugin(),), schedule="auto") as bot:

        async def told() -> bool:
            return "the filter short has failed" in await bot.command("status")

        await rated(bot, "break")
        await bot.rated(8)
        await until(told)
        assert await rows(bot.store, "SELECT 1 FROM runs") == []
        assert not (await bot.app.scheduler.readiness()).due


@pytest.mark.parametrize(
    ("on", "said"),
    [
        ({"word": {}}, "words"),
        ({"words": {"blocked": ["a"]}}, "block"),
        ({"words": {"block": ["?!"]}}, "no word"),
        ({"personal": {"email": "yes"}}, "email"),
    ],
)
async def test_a_mistake_in_the_config_ends_the_start(
    tmp_path: Path, on: Mapping[str, Any], said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        async with filtered_bot(tmp_path, on):
            pass
