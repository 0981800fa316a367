# SPDX-License-Identifier: Apache-2.0
"""What owners are told unasked is in the language that each of them reads."""

from __future__ import annotations

import string
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from goodbot.access import linking, readers
from goodbot.access.readers import Readers
from goodbot.api import progress
from goodbot.api.learnt import Learnt, card
from goodbot.api.sentences import Condition, Reason, clause_of, kept, waits, words
from goodbot.api.texts import LANGUAGES, catalogue, figure, percent, reworded
from goodbot.commands import audit, rollback_window
from goodbot.config import ServingConfig
from goodbot.conversation.notifications import trainings
from goodbot.conversation.notifications.alarms import advised, described
from goodbot.inference.servers import health
from goodbot.learning import canary
from goodbot.learning.evaluation import electorate
from goodbot.learning.rating_quality.contradictions import Alarm
from goodbot.learning.training import outcome, scheduler, trainer
from goodbot.store import adapters, comparisons, news, runs

from tests.core.builders import OWNER, Bot, open_bot, rate, until
from tests.core.test_dispatcher import message

OTHERS = [language for language in LANGUAGES if language != "en"]


def live(bot: Bot) -> list[str]:
    return [said.text for said in bot.chat.news if "`/rl why`" in said.text]


async def trained(bot: Bot) -> str:
    await bot.rated(8)
    await bot.train()
    await bot.app.news.look()
    await until(lambda: live(bot))
    return live(bot)[0]


async def test_an_owner_reads_the_news_in_the_language_of_their_platform(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        event = rate("r1", 5, 1.0, message_id="", user=replace(OWNER, language="de-AT"))
        await bot.chat.host.submit([event])
        said = await trained(bot)
        assert said.startswith("v1 ist jetzt im Einsatz. Gelernt hat sie aus 6 bewerteten Antworten (")
        assert "2 weitere dienen der Prüfung" in said


async def test_an_owner_of_whom_nothing_is_known_reads_what_the_config_says(tmp_path: Path) -> None:
    async with open_bot(
        tmp_path, sections={"serving": ServingConfig(history=0, ask="never", language="fr")}
    ) as bot:
        assert (await trained(bot)).startswith("v1 est en service. Elle a appris de 6 réponses notées (")


def test_the_last_word_of_a_platform_counts_and_a_crowd_takes_no_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(readers, "_MOST", 2)
    known = Readers("es")
    tags = [("a", "de"), ("b", "nl"), ("a", "ja"), ("c", "pt-BR"), ("a", "")]
    known.heard([message(who, user=replace(OWNER, id=who, language=tag)) for who, tag in tags])
    told = [known.language(f"{OWNER.connector}:{who}") for who in ("a", "b", "c")]
    assert told == ["ja", "es", "pt"]
    known.heard([message("d", user=replace(OWNER, id="d", language="zh"))])
    assert known.language(f"{OWNER.connector}:a") == "es"


CODES = (
    *(adapters.FORGOTTEN, adapters.PINNED, adapters.AWAY, adapters.UNSERVED, adapters.CANARY),
    *(comparisons.COMPARED, runs.CHANGED, linking._CHANGED, *runs._ENDED.values()),
    *(rollback_window._TAINT, rollback_window._RESET, *filter(None, health._CAUSES.values())),
    *("kept_no_fingerprint", "kept_busy", audit.NOT_ALLOWED, audit.NOT_DONE, audit.NOT_FINISHED),
    *(scheduler.CANCELLED.code, trainer.STOPPED.code, outcome.NO_VERDICT.code),
    *(canary.LOST.code, electorate.LOST.code),
)
"""All that the store keeps of a version or a training, or that is kept of the server, without a number."""


@pytest.mark.parametrize("code", CODES)
def test_every_code_that_stands_alone_has_its_words_in_every_language(code: str) -> None:
    said = {language: clause_of(code, language) for language in LANGUAGES}
    assert len({*said.values()}) == len(LANGUAGES), "each its own"
    assert all(said[language] == catalogue(language)[code] for language in LANGUAGES)
    assert kept(code) == (Reason(code),)


def test_a_code_within_a_reason_is_told_like_one_alone() -> None:
    for language in LANGUAGES:
        assert clause_of(adapters.AWAY, language) in words(
            Reason("waits_now", {"why": adapters.AWAY}), language=language
        )


NO_CODES = ("kept_in_mind", "kept_less", "kept_to_check")
"""The first is in no catalogue, the others have facts."""


@pytest.mark.parametrize(
    "said", ["CUDA is out of memory", "it is pinned", "Kept_pinned", "", "kept of", *NO_CODES]
)
def test_what_is_no_code_stays_as_it_is(said: str) -> None:
    assert reworded(said, "de") == clause_of(said, "de") == said


@pytest.mark.parametrize(
    ("language", "said"),
    [
        ("en", ("10,000", "0.312", "38%", "−38%")),
        ("de", ("10.000", "0,312", "38\u00a0%", "−38\u00a0%")),
        ("fr", ("10\u00a0000", "0,312", "38\u00a0%", "−38\u00a0%")),
        ("ja", ("10,000", "0.312", "38%", "−38%")),
        ("pt", ("10.000", "0,312", "38%", "−38%")),
    ],
)
def test_numbers_are_written_as_the_language_does(language: str, said: tuple[str, ...]) -> None:
    numbers = figure(10_000, language), figure(0.312, language, digits=3)
    assert (*numbers, percent(0.38, language), percent(-0.38, language, signed=True)) == said


CONDITIONS = (
    *(waits(name, step=3, steps=6) for name in ("paused", "quiet_hours", "battery", "goes_on")),
    *(waits(name, load=0.9, limit=0.75, step=0, steps=0) for name in ("processors", "gpu")),
    *(waits("disk", megabytes=700, step=step, steps=6 if step else 0) for step in (0, 3)),
    *(waits("off"), waits("manual"), waits("schedule", time="04:00"), waits("cancelled", wanted=1)),
    *(waits("ratings", available=1, needed=8), waits("enough", available=1)),
    *(
        Condition(name="unsuccessful", facts={"wanted": 2}, private={"state": state, "reason": "why"})
        for state in ("failed", "refused")
    ),
)


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_a_training_waits_for_is_said_in_every_language(language: str) -> None:
    for one in CONDITIONS:
        one = replace(one, facts={"until": "07:00", **one.facts})
        told = one.for_owners(language)
        assert "{" not in told
        assert language == "en" or told != one.for_owners(), one.name
        assert ("3" in told) == ("step" in one.facts and one.facts["step"] == 3), one.name
    assert "why" not in CONDITIONS[-1].for_everybody(language)


def test_plurals_of_what_it_waits_for() -> None:
    assert waits("cancelled", wanted=1).for_everybody().endswith("; 1 new rating until another try")
    assert (
        waits("ratings", available=0, needed=1).for_everybody()
        == "0 of 1 rating, 1 more until the next training"
    )
    assert waits("enough", available=2).for_everybody("de") == "2 Bewertungen"


def alarm(against: str) -> Alarm:
    return Alarm(rater="telegram:7", against=against, count=9, of=12, usual=0.25, since=1.0, seq=3)


@pytest.mark.parametrize("language", LANGUAGES)
def test_an_alarm_is_told_in_every_language(language: str) -> None:
    for against in ("own", "others"):
        told = advised(alarm(against), language)
        assert told.startswith(described(alarm(against), language))
        assert figure(10_000, language) in told
        assert percent(0.25, language) in told
        assert "`/rl people revoke telegram:7`" in told


def test_what_has_changed_is_told_with_the_signs_of_the_language() -> None:
    shift: dict[str, Any] = {"feature": "length", "word": "", "before": 9.0, "after": 5.0, "named": True}
    shift |= {"change": -0.38, "low": -0.4, "high": -0.3}
    begins = {**shift, "feature": "opens", "word": "Oui", "before": 0.1, "after": 0.4, "change": 0.3}
    found = Learnt.parse(
        {"answers": 8, "questions": 4, "trained": False, "shifts": [shift, begins], "examples": []}
    )
    assert card(found, "fr") == (
        "plus courtes (−38\u00a0%), commence plus souvent par «\u00a0Oui\u00a0» (10\u00a0% → 40\u00a0%)"
    )
    assert card(found, "zh") == "更短（−38%），更常以“Oui”开头（10% → 40%）"


def test_what_was_learnt_from_is_counted_in_every_language() -> None:
    made_of = news.RunMaterial(
        trained=33, held_out=1, good=20, bad=12, raters=2, since=0.0, until=0.0, off_policy=9, judged=1
    )
    assert trainings.counted(made_of) == (
        "33 rated answers of 2 people (20 good, 12 bad, 1 in between; 9 by other models; "
        "1 more was judged, not rated)"
    )
    assert trainings.counted(made_of, "de") == (
        "33 bewerteten Antworten von 2 Personen (20 gut, 12 schlecht, 1 dazwischen; 9 von anderen Modellen; "
        "1 weitere wurde beurteilt, nicht bewertet)"
    )
    assert trainings.kept(made_of, "ja") == "ほかに 1 件は確認用に残しました"


def test_a_run_under_way_is_told_in_the_readers_language() -> None:
    now = {"phase": "train", "step": 12, "steps": 32, "loss": 0.3125, "eta": 61.2, "left": 1}
    assert progress.sentence(now, "de").startswith("Lernen: 12/32, noch 61 s. Ich habe neu angefangen: ")
    assert progress.sentence(now, "de", figures=True) == (
        "Lernen: 12/32, Verlust 0,312, noch 61 s. Ich habe neu angefangen: 1 Antwort wartet auf das nächste "
        "Training, denn ihre Bewertung hat sich währenddessen geändert."
    )
    told = progress.sentence(now, "zh", figures=True)
    assert told.startswith("正在学习：12/32，损失 0.312，还剩 61 秒。")


def test_a_feature_has_both_its_texts() -> None:
    keys = {key for key in catalogue("en") if key.startswith("changed_")}
    assert {key.rpartition("_")[0] for key in keys if key.endswith("_more")} == {
        key.rpartition("_")[0] for key in keys if key.endswith("_less")
    }
    assert all(
        "figures" in [name for _, name, _, _ in string.Formatter().parse(str(catalogue("en")[key]))]
        for key in keys
    )
