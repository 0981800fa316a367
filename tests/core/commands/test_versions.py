# SPDX-License-Identifier: Apache-2.0
"""What a page shows of all versions: the tree in words, two compared, and for owners alone."""

from __future__ import annotations

import json
import shlex
import tarfile
from dataclasses import asdict
from pathlib import Path

import aiosqlite
import pytest
from goodbot.api.events import UserRef
from goodbot.api.learnt import Learnt
from goodbot.api.versions import FeatureCompared, Versions, VersionSeen
from goodbot.base.errors import UsageError
from goodbot.cli.parser import parse
from goodbot.commands import measured
from goodbot.config import ServingConfig, clear
from goodbot.store import exporting

from tests.core.builders import Bot, open_bot
from tests.core.commands.test_overview import SHORTER, taught
from tests.core.learning.evaluation.asking import asked, letter, open_asking, prefer

LEARNT = "shorter (−38%)"


async def seen(bot: Bot, *two: int, user: str = "owner", language: str = "") -> Versions:
    person = UserRef(connector="loopback", account="loopback", id=user, language=language)
    return await bot.chat.host.versions(person, *two)


def states(found: Versions) -> list[tuple[int | None, int, str]]:
    """Version, how far it is indented, and its state, from the newest to the base model."""
    return [(one.version, one.depth, one.state) for one in found.seen]


def told(found: Versions, version: int | None) -> VersionSeen:
    return next(one for one in found.seen if one.version == version)


async def trained(bot: Bot) -> None:
    await bot.rated(8)
    await bot.train()


async def test_before_anything_is_trained(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        found = await seen(bot)
        assert states(found) == [(0, 0, "answers")]
        assert found.answers == "The base model answers now."
        assert (found.held, found.compared) == (False, None)


async def test_a_version_says_when_it_was_made_of_what_and_how_it_was_liked(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await taught(bot)
        await bot.react(await bot.say("one more"), "👍")
        found = await seen(bot)
        assert states(found) == [(1, 0, "answers"), (0, 0, "before")]
        one, base = found.seen
        assert one.made_of.startswith("6 rated answers of 2 people (")
        assert one.learnt == LEARNT
        assert one.made_at == (await bot.app.registry.row(1)).created_at
        assert one.usable
        assert one.liked is not None
        assert (one.liked.good, one.liked.rated) == (1, 1)
        assert base.liked is not None
        assert (base.liked.good, base.liked.rated) == (5, 8)
        assert base.usable
        german = await seen(bot, language="de")
        assert german.answers == "v1 antwortet jetzt."
        assert told(german, 1).made_of.startswith("6 bewertete")
        assert told(german, 1).learnt.startswith("kürzer")


async def test_what_exports_a_version_is_told_where_it_can_be_exported(tmp_path: Path) -> None:
    home = tmp_path / "a b"
    home.mkdir()
    async with open_bot(home) as bot:
        await trained(bot)
        await trained(bot)
        found = await seen(bot)
        assert told(found, 0).export == "", "the base model is as it came"
        command = f"goodbot --home {shlex.quote(str(home / 'bot'))} adapters export 2 --out goodbot-v2"
        assert told(found, 2).export == command
        parsed = parse(shlex.split(command)[1:])
        assert (parsed.home, parsed.version, parsed.out) == (home / "bot", "2", Path("goodbot-v2"))


async def test_a_version_is_exported_to_a_place_of_ours_as_other_exports_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_bot(tmp_path) as bot:
        await trained(bot)
        names = ["goodbot-v1.tar", "goodbot-v1-2.tar"]
        for name in names:
            assert f"v1 is in `exports/{name}`" in await bot.command("adapters", "export 1")
            with tarfile.open(tmp_path / "bot/exports" / name) as tar:
                assert {"adapter_config.json", "adapter_model.safetensors"} < {*tar.getnames()}
        made = exporting.files(tmp_path / "bot")
        assert {one.name for one in made} == {*names}, "what forgetting deletes"
        assert "in a terminal" in await bot.command("adapters", "export base")
        assert "`adapters export 7`" in await bot.command("adapters", "export")
        monkeypatch.setattr(clear, "is_apart", lambda _: True)
        assert "in a terminal" in await bot.command("adapters", "export 1"), "all else there is encrypted"
        assert "exports/" not in await bot.command("adapters", "export 1", user="rater")


async def test_what_was_rolled_back_stands_beside_the_line(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        for _ in range(2):
            await trained(bot)
        await bot.rollback("1")
        assert states(await seen(bot)) == [(2, 0, "back"), (1, 0, "answers"), (0, 0, "before")]
        await trained(bot)
        found = await seen(bot)
        assert states(found) == [(3, 0, "answers"), (2, 1, "back"), (1, 0, "before"), (0, 0, "before")]
        assert told(found, 2).told == "Another version answers in its place."
        german = await seen(bot, 0, 3, language="de")
        assert told(german, 2).told == "Eine andere Version antwortet an ihrer Stelle."
        assert told(german, 0).told.endswith(", wie es kam.")
        assert german.compared is not None
        assert german.compared.told[0] == "Der Weg zu v3: das Basismodell, dann v1."
        assert (told(found, 3).parent, told(found, 2).parent) == (1, 1)


async def test_a_refused_training_says_why(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        bot.fake.set(train="refuse")
        await trained(bot)
        reason = (await bot.last_run()).reason
        found = await seen(bot)
        assert states(found) == [(None, 1, "refused"), (0, 0, "answers")]
        assert reason.rstrip(".").casefold() in told(found, None).told.casefold()
        await trained(bot)
        again = told(await seen(bot), None)
        assert again.told.startswith("2 trainings on the base model were refused. The last one: ")


async def test_a_version_on_what_is_taken_back_is_withdrawn_and_says_why(tmp_path: Path) -> None:
    async with open_bot(tmp_path, schedule="manual") as bot:
        await trained(bot)
        await bot.command("rollback", "all")
        await bot.command("rollback", "all yes")
        found = await seen(bot)
        assert states(found) == [(1, 0, "withdrawn"), (0, 0, "answers")]
        assert told(found, 1).told == "Ratings that it was trained on do not count any more."
        german = told(await seen(bot, language="de"), 1)
        assert "zählen nicht mehr" in german.told
        assert not told(found, 1).usable
        assert told(found, 1).export == "", "what was taken back goes nowhere"


async def test_one_that_waits_says_for_what_and_one_that_is_kept_holds_the_others(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await trained(bot)
        await bot.command("adapters", "pin")
        await trained(bot)
        found = await seen(bot)
        assert states(found) == [(2, 0, "waits"), (1, 0, "answers"), (0, 0, "before")]
        assert told(found, 2).told == "The version that answers is pinned."
        assert (told(found, 1).pinned, found.held) == (True, True)


async def test_one_that_some_conversations_get_is_being_tried(tmp_path: Path) -> None:
    sections = {"serving": ServingConfig(history=0, ask="never", canary=0.5)}
    async with open_bot(tmp_path, sections=sections) as bot:
        await trained(bot)
        assert states(await seen(bot)) == [(1, 0, "tried"), (0, 0, "answers")]


async def test_two_are_compared_by_what_lies_between_them(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        bot.fake.set(learnt=[SHORTER])
        for _ in range(3):
            await trained(bot)
        one = (await seen(bot, 1, 0)).compared
        assert one is not None
        assert (one.first, one.second) == (0, 1), "the older one first"
        assert one.told[0] == "v1 comes from the base model."
        assert one.told[1].startswith("Learnt in between: 6 rated answers (")
        assert 0 < len(one.pairs) <= 5
        assert all(pair.prompt.startswith("question") for pair in one.pairs)
        far = (await seen(bot, 0, 3)).compared
        assert far is not None
        assert far.told[0] == "v3 comes from the base model by way of v1, v2."
        assert far.pairs == [], "no answers of these two to one question are stored"
        await bot.rollback("1")
        await trained(bot)
        apart = (await seen(bot, 3, 4)).compared
        assert apart is not None
        assert apart.told == ["v4 does not come from v3: both come from v1."]
        for two in ((1, 1), (1, 9)):
            with pytest.raises(UsageError, match="Choose two versions"):
                await seen(bot, *two)


LISTS = {
    **SHORTER,
    "feature": "lists",
    "before": 0.6,
    "after": 0.12,
    "change": -0.48,
    "low": -0.6,
    "high": -0.36,
    "named": False,
}


async def test_two_are_compared_by_what_was_measured_of_their_answers(tmp_path: Path) -> None:
    none = {**LISTS, "feature": "code", "before": 0.0, "after": 0.0, "change": 0.0, "low": 0.0, "high": 0.0}
    strange = {**LISTS, "feature": "of a newer goodbot"}
    async with open_bot(tmp_path) as bot:
        bot.fake.set(learnt=[LISTS, SHORTER, none, strange])
        await trained(bot)
        bot.fake.set(learnt=[{**SHORTER, "before": 80.0, "after": 93.0}, {**LISTS, "after": 0.4}])
        await trained(bot)
        near = (await seen(bot, 0, 1)).compared
        assert near is not None
        assert near.features == [
            FeatureCompared(
                name="Characters of an answer",
                first="100",
                second="62",
                change="−38% (95% interval −50% to −20%)",
                clear=True,
            ),
            FeatureCompared(
                name="Answers with a list",
                first="60%",
                second="12%",
                change="−48 points (95% interval −60 to −36 points)",
                clear=False,
            ),
        ]
        assert near.measured == (
            "Measured in 64 answers of each to the same 8 questions."
            " Underlined is what both answers and ratings prove. Of the rest, some may be chance."
        )
        far = (await seen(bot, 0, 2, language="de")).compared
        assert far is not None
        told = [(one.name, one.first, one.second, one.change, one.clear) for one in far.features]
        assert told == [
            ("Antworten mit einer Liste", "60\u00a0%", "40\u00a0%", "−20 Prozentpunkte", False),
            ("Zeichen einer Antwort", "100", "93", "−7\u00a0%", False),
        ], "the base model as v1's training measured it, and v2 as its own did"
        assert far.measured.startswith("Die beiden wurden zu verschiedenen Zeiten")
        await bot.rollback("1")
        bot.fake.set(learnt=[{**SHORTER, "after": 50.0}])
        await trained(bot)
        apart = (await seen(bot, 2, 3)).compared
        assert apart is not None
        assert [(one.first, one.second) for one in apart.features] == [("93", "50")]


@pytest.mark.parametrize("trained", [False, True])
def test_where_a_training_has_learnt_from_what_it_was_measured_by_it_says_so(trained: bool) -> None:
    event = {"answers": 64, "questions": 8, "trained": trained, "shifts": [SHORTER], "examples": []}
    how, _ = measured._at_once(Learnt.parse(event), "en")
    assert ("8 questions. This training has learnt from these questions. Underlined is" in how) is trained


async def test_what_nobody_has_measured_is_not_compared(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await trained(bot)
        found = (await seen(bot, 0, 1)).compared
        assert found is not None
        assert (found.measured, found.features) == ("", [])


def standing(found: Versions) -> list[tuple[str, float, int]]:
    """How the base models stand."""
    return [(one.model, round(one.share, 6), one.choices) for one in found.bases]


async def of_another_model(db: aiosqlite.Connection) -> None:
    """The same questions, of another base model: there all chose the new version. Two do not count."""
    for number, old, new, closed in ((2, 0, 9, 1.0), (3, 9, 10, 1.0), (4, 0, 11, None)):
        await db.execute(
            "INSERT INTO comparisons (id, scope, model, run, old, new, held, seed, state, opened_at,"
            " closed_at) SELECT ?, scope, 'another', run, ?, ?, 0, 0,"
            " iif(? IS NULL, 'asking', 'passed'), 1.0, ?"
            " FROM comparisons WHERE id = 1",
            (number, old, new, closed, closed),
        )
        await db.execute(
            "INSERT INTO pairs (comparison, turn, owner, temperature, seed, prompt_tokens, old_answer,"
            " old_tokens, old_logprobs, new_answer, new_tokens, new_logprobs, choice, chosen_by, chosen_at)"
            " SELECT ?, turn, owner, temperature, seed, prompt_tokens, old_answer, old_tokens, old_logprobs,"
            " new_answer, new_tokens, new_logprobs, 'new', chosen_by, chosen_at"
            " FROM pairs WHERE comparison = 1 AND choice = 'old'",
            (number,),
        )


async def test_what_owners_are_asked_about_stays_hidden_until_they_have_chosen(tmp_path: Path) -> None:
    async with open_asking(tmp_path) as bot:
        bot.fake.set(learnt=[SHORTER])
        await trained(bot)
        [question] = await asked(bot)
        found = await seen(bot, 0, 1)
        assert told(found, 1).learnt == ""
        assert found.compared is not None
        assert (found.compared.pairs, found.compared.features) == ([], [])
        assert (found.asks, found.places) == (5, [])
        await prefer(bot, 0, 3, question)
        found = await seen(bot, 0, 1)
        assert (found.asks, found.places) == (2, []), "not before all have chosen"
        assert found.compared is not None
        assert not [one for one in found.compared.told if "blind" in one]
        await bot.command("compare", letter(await bot.command("compare"), 0))
        found = await seen(bot, 0, 1)
        assert states(found) == [(1, 0, "back"), (0, 0, "answers")]
        assert told(found, 1).told == "Owners, asked blind, found it worse than the version before."
        assert told(found, 1).learnt == LEARNT
        assert found.compared is not None
        assert found.compared.told[-1] == "Asked blind, owners chose: 0 for v1, 4 for the base model."
        assert {pair.before[:7] for pair in found.compared.pairs} >= {"v0 says"}
        assert len(found.compared.pairs) == 5
        assert [one.second for one in found.compared.features] == ["62"]
        assert found.asks == 0
        assert [(one.version, one.by, one.choices) for one in found.places] == [(0, 0, 4), (1, 0, 4)]
        assert found.places[1].share == pytest.approx(0.5 / 5)
        model = bot.app.ab_test.pool.model
        assert standing(found) == [(model, 0.1, 4)]
        await bot.store.write(of_another_model)
        found = await seen(bot)
        assert standing(found) == [("another", 0.9, 4), (model, 0.1, 4)], "none is of two versions or open"
        assert len(found.places) == 2, "the other model's do not count among the versions"


async def test_nobody_but_an_owner_sees_any_of_it(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await taught(bot)
        for user in ("rater", "talker", "stranger"):
            for two in ((), (0, 1)):
                with pytest.raises(UsageError, match="Only owners see the versions"):
                    await seen(bot, *two, user=user)
        with pytest.raises(UsageError, match="Nur Besitzer sehen die Versionen"):
            await seen(bot, user="rater", language="de")
        said = json.dumps(asdict(await seen(bot, 0, 1)))
        assert "the owner's secret" in said
        assert "the rater's secret" not in said, "what others said in private is nobody else's"
        assert "loopback" not in said
