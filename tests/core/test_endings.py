# SPDX-License-Identifier: Apache-2.0
"""Why a training began and how it ended: kept as codes with their figures, told in every language."""

from __future__ import annotations

from pathlib import Path

import pytest
from goodbot.api.sentences import Condition, Reason, because, brief, in_words, waits, words
from goodbot.api.texts import LANGUAGES
from goodbot.learning.training import scheduler
from goodbot.store import adapters, codec, news, runs

from tests.core.builders import open_bot, rows

SOUND = (because("check_unusual", anchors=128, foreign=2), because("check_few", count=8))
INTERVAL = {"level": 0.99, "change": 0.4, "low": -0.05, "high": 0.75, "count": 64, "rounds": 8}
LOST = because("harm_knowledge", foreign=30, anchors=128, before=0, allowed=19)
ENDINGS: tuple[tuple[Reason, ...], ...] = (
    SOUND,
    (because("check_sound", anchors=1), because("check_unclear", **INTERVAL)),
    (because("check_kept", share=0.5), *SOUND, because("check_full", strength=1.0, what=LOST)),
    (because("harm_drift", by=3.0, count=128, limit=1.5), because("answers_wait", answers=2)),
    (because("harm_margin", **{**INTERVAL, "level": 0.95, "rounds": 0}),),
    (because("check_unheard", count=1), because("check_share", share=0.33), because("check_half")),
    (*SOUND, because("waits_on_trial", share=0.2, version=3)),
    (*SOUND, because("waits_compared", version=3, why=adapters.AWAY)),
    (because("ended_model", model="beta"),),
    (because("trial_figures", good=2, rated=20, then=30, of=40, old=0),),
    (because("ended_parent", why=runs.CHANGED),),
)


@pytest.mark.parametrize("ending", ENDINGS)
def test_codes_are_the_same_after_they_were_kept(ending: tuple[Reason, ...]) -> None:
    kept = codec.load_reasons(codec.dump_reasons(ending))
    for language in LANGUAGES:
        told = words(*kept, language=language)
        assert told == words(*ending, language=language)
        assert "{" not in told
        assert language == "en" or told != words(*kept)


def test_the_figures_stand_as_the_language_writes_them() -> None:
    [unclear] = codec.load_reasons(codec.dump_reasons((because("check_unclear", **INTERVAL),)))
    assert words(unclear) == (
        "It is not clear whether it is better: +0.40 (99% interval -0.05 to +0.75) "
        "on 64 ratings kept for the check of 8 rounds."
    )
    assert "+0,40" in words(unclear, language="de")
    assert "99\u00a0%" in words(unclear, language="fr")
    too_far = because("harm_drift", by=3.0, count=1, limit=1.5)
    assert words(too_far) == (
        "Its answers are too far from the base model's: 3.00 over 1 answer (allowed: 1.5)."
    )
    assert words(because("check_part", strength=0.5, what=too_far)).startswith("At 50% its answers are")


HALF = (because("check_kept", share=0.5), *SOUND, because("check_full", strength=1.0, what=LOST))


def test_the_news_say_what_was_kept_and_why_without_the_figures() -> None:
    assert words(*brief(HALF)) == (
        f"50% of the change is kept, since more of it made 30 test answers odd. {words(*SOUND)}"
    )
    kept = codec.load_reasons(codec.dump_reasons(HALF))
    for language in LANGUAGES:
        told = words(*brief(kept), language=language)
        assert "30" in told
        assert "19" not in told, "what is allowed is a figure"
        assert words(LOST, language=language)[1:-2] not in told
    too_far = because("check_part", strength=0.5, what=because("harm_drift", by=3.0, count=9, limit=1.5))
    told = words(*brief((because("check_kept", share=0.25), *SOUND, too_far)))
    assert told == f"25% of the change is kept, since more of it was too much. {words(*SOUND)}"
    one = because("harm_knowledge", foreign=4, anchors=128, before=3, allowed=0)
    told = words(*brief((because("check_kept", share=0.5), because("check_full", strength=1.0, what=one))))
    assert told == "50% of the change is kept, since more of it made 1 test answer odd."


def test_what_is_no_good_news_or_not_ours_is_told_as_it_is() -> None:
    refused = (because("check_not_kept", share=0.5), LOST, because("check_full", strength=1.0, what=LOST))
    for whole in (SOUND, refused, (), (because("check_kept", share=0.5), *SOUND)):
        assert brief(whole) == whole
    assert words(*brief((because("check_kept", share=0.5), because("check_full")))) == ""


async def test_the_figures_of_what_was_kept_are_behind_details(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        await bot.train()
        ending = codec.dump_reasons(HALF)
        await bot.store.write(lambda db: db.execute("UPDATE runs SET reason = ?", (ending,)))
        for command in ("why", "status", "adapters", "adapters show 1"):
            name, _, words_ = command.partition(" ")
            said = await bot.command(name, words_)
            assert "50% of the change is kept, since more of it made" in said, command
            assert "lost knowledge" not in said, command
        for name, words_ in (("status", "--details"), ("adapters", "show 1 --details")):
            assert "At full strength it has lost knowledge: 30 of 128" in await bot.command(name, words_)
        last = (await bot.status())["last_run"]
        assert (last["reason"], last["short"]) == (words(*HALF), words(*brief(HALF))), "nothing is lost"


@pytest.mark.parametrize("kept", ["No harm found in 256 sampled answers.", '[["', "[[1]]", '[["x", 1, 2]]'])
def test_an_old_sentence_stays_as_it_is(kept: str) -> None:
    assert codec.load_reasons(kept) == in_words(kept)
    assert words(*codec.load_reasons(kept), language="de") == kept
    assert codec.load_reasons(codec.dump_reasons(in_words(kept))) == in_words(kept)


def test_a_goodbot_before_codes_gets_the_sentences() -> None:
    assert codec.worded_reasons(codec.dump_reasons(SOUND)) == words(*SOUND)
    assert codec.worded_reasons(codec.dump_reasons(news.asked_by("a:1"))) == "asked for by a:1"
    assert codec.worded_reasons(codec.dump_reasons((scheduler.CANCELLED,))) == "it was cancelled"
    assert codec.worded_reasons("somebody else's words") == "somebody else's words"


def test_nothing_stays_nothing() -> None:
    assert codec.load_reasons(codec.dump_reasons(())) == () == in_words("")


def test_what_began_a_training_is_told_in_every_language() -> None:
    for condition in (
        Condition(name="enough", met=True, facts={"available": 40, "said": ""}),
        Condition(name="replaces", met=True, facts={"said": runs.CHANGED}),
        waits("goes_on", step=3, steps=6),
    ):
        [kept] = codec.load_reasons(codec.dump_reasons((condition.reason(),)))
        for language in LANGUAGES:
            assert words(kept, language=language) == condition.for_owners(language) != ""


async def test_a_run_says_in_every_language_how_it_came_and_ended(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        await bot.train()
        ending = codec.dump_reasons(SOUND)
        await bot.store.write(lambda db: db.execute("UPDATE runs SET reason = ?", (ending,)))
        run = await bot.last_run()
        assert run.reason == words(*SOUND)
        [asked] = run.cause
        assert (asked.code, asked.facts) == ("begun_asked", {"person": "loopback:owner"})
        cause, verdict = await bot.store.read(lambda db: news.cause(db, run.id))
        assert news.was_asked(cause)
        assert verdict == run.ending
        assert words(*SOUND) in await bot.command("why")
        assert words(*SOUND) in await bot.command("status")
        assert await bot.store.read(lambda db: runs.live(db, run.id)) == run.ending


@pytest.mark.parametrize("old", [False, True])
async def test_who_asked_for_a_training_is_forgotten(tmp_path: Path, old: bool) -> None:
    """Also where a goodbot before codes has kept a sentence."""
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        await bot.train()
        if old:
            sentence = "asked for by loopback:owner"
            await bot.store.write(lambda db: db.execute("UPDATE runs SET why = ?", (sentence,)))
            cause, _ = await bot.store.read(lambda db: news.cause(db, 1))
            assert cause == news.asked_by("loopback:owner")
        await bot.store.write(lambda db: news.forget_asked(db, "loopback:owner", "forgotten"))
        [(kept,)] = await rows(bot.store, "SELECT why FROM runs")
        assert codec.load_reasons(kept) == news.asked_by("forgotten")
