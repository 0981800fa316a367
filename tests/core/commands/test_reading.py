# SPDX-License-Identifier: Apache-2.0
"""What commands answer to owners is in the language of whoever reads it."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from goodbot.api.fingerprint import ServedAs
from goodbot.api.sentences import waits
from goodbot.api.texts import LANGUAGES
from goodbot.commands import taught
from goodbot.config import ServingConfig
from goodbot.inference.servers import health
from goodbot.learning.evaluation.report import Report
from goodbot.store.acceptance import Acceptance
from goodbot.store.comparisons import Sum, Tally
from goodbot.store.rated import TaughtThere

from tests.core.builders import open_bot
from tests.core.commands.test_activity import page
from tests.security.test_status import status

OTHERS = [language for language in LANGUAGES if language != "en"]
GERMAN = {"serving": ServingConfig(history=0, ask="never", language="de")}


@pytest.mark.parametrize("language", OTHERS)
@pytest.mark.parametrize("server", ["up", "down", "stopped"])
@pytest.mark.parametrize("off", [True, False])
def test_no_line_of_status_stays_english(language: str, server: str, off: bool) -> None:
    public: dict[str, Any] = {"model": "tiny", "version": 1, "off": off, "server": server, "store": "full"}
    public |= {"starting": "", "training": None, "waits": "", "ratings": 3, "needed": 40}
    found = status(**public, tainted=True, tainted_by="why", condition=waits("paused"))
    found = replace(found, proof=health._proof(1, ServedAs.BASE))
    same = {*found.for_owners()} & {*found.for_owners(language)}
    assert [line for line in same if line.replace("CANARY", "").strip(" :")] == [], "others' own words"
    nobody = replace(found, model=None).for_everybody(language)
    assert nobody[0] != replace(found, model=None).for_everybody()[0]


def test_how_versions_are_rated_is_told_in_german() -> None:
    rated = [Acceptance(version=7, good=32, rated=41), Acceptance(version=0, good=1, rated=1)]
    chosen = [Sum(old=6, new=7, state="stays", tally=Tally(old=1, new=3, same=1))]
    assert Report(accepted=rated, chosen=chosen, waiting=None).lines("de") == [
        "v7: 32 von 41 bewerteten Antworten gut (63\u00a0% bis 88\u00a0%)",
        "das Basismodell: 1 von 1 bewerteter Antwort gut",
        "blind verglichen: 3 für v7, 1 für v6, 1 gleich",
    ]


async def test_status_is_german_for_who_reads_german(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_bot(tmp_path, sections=GERMAN) as bot:
        told = await bot.command("status")
        assert told.startswith("das Basismodell antwortet (")
        assert "0 von 8 Bewertungen" in told
        monkeypatch.setitem(bot.app.connectors.time.ahead, "Pigeon", -90.0)
        monkeypatch.setattr(bot.app.server, "healthy", lambda: False)
        told = await bot.command("status")
        assert "das Modell läuft nicht; goodbot versucht es jede halbe Minute wieder" in told
        assert "die Uhr dieses Rechners geht gegenüber Pigeon 90 s nach." in told
        monkeypatch.undo()
        await bot.rated(8)
        await bot.train()
        told = await bot.command("status")
        assert told.startswith("v1 antwortet (")
        assert "letztes Training: v1 antwortet. " in told


async def test_why_is_german_for_who_reads_german(tmp_path: Path) -> None:
    async with open_bot(tmp_path, sections=GERMAN) as bot:
        told = await bot.command("why")
        assert told.startswith("Noch ist nichts trainiert: Das Basismodell antwortet. 0 von 8 Bewertungen")
        assert "Reagiere mit 👍 oder 👎 auf meine Antworten" in told
        await bot.rated(8)
        await bot.train()
        told = await bot.command("why")
        assert told.startswith("v1 antwortet: Basismodell → v1.\n")
        assert re.search(
            r"Gelernt hat sie aus 6 bewerteten Antworten \(.*\), gegeben am \d{4}-\d\d-\d\d;", told
        )
        assert "Anlass: ein Besitzer wollte es." in told
        assert "Deine eigenen Fragen, vorher und nachher:" in told


def test_what_an_answer_has_taught_is_told_in_german() -> None:
    lesson = TaughtThere(
        version=2, parent=1, at=0.0, trained=True, reward=1.0, weight=1.0, tainted="", answers=6, words=()
    )
    [told] = taught._told(lesson, "de")
    assert re.fullmatch(r"v2, \d{4}-\d\d-\d\d: Diese Antwort, eine von 6, zählte beim Lernen als gut\.", told)
    assert taught.words_told([("Hallo", 1.0)], 2, 1, "de") == [
        "In dieser Antwort ist für v2 wahrscheinlicher als für v1: „Hallo“."
    ]


async def test_trainings_are_german_for_who_reads_german(tmp_path: Path) -> None:
    async with open_bot(tmp_path, sections=GERMAN) as bot:
        told = await bot.command("train")
        assert told == "0 Bewertungen reichen nicht für ein Training: Bewerte erst ein paar Antworten."
        act, *_ = (await page(bot)).acts
        assert act.refused == "0 ratings are not enough to train on: rate some answers first", (
            "for all owners"
        )
        assert await bot.command("pause") == (
            "Das Training ist pausiert; Bewertungen werden weiter angenommen. Mit `resume` geht es weiter."
        )
        assert (await bot.command("resume")).startswith("An: das Basismodell antwortet, und das")
        assert await bot.command("train", "stop") == "Es läuft kein Training."
        await bot.rated(5)
        told = await bot.command("train")
        assert told.startswith("5 Bewertungen sind wenig: Mit 3 weiteren lerne ich besser, was dir gefällt.")
        assert told.endswith("Wenn du das willst, tipp hier innerhalb einer Minute `/rl train yes`.")
        told = await bot.command("train", "yes")
        assert told == "Das Training beginnt mit 5 Bewertungen. `status` zeigt, wie weit es ist."


async def test_rollbacks_are_german_for_who_reads_german(tmp_path: Path) -> None:
    async with open_bot(tmp_path, sections=GERMAN) as bot:
        told = await bot.command("rollback")
        assert told == "Das Basismodell antwortet schon: Es gibt nichts zurückzunehmen."
        await bot.rated(8)
        await bot.train()
        told = await bot.command("rollback")
        assert told.startswith("Dann antwortet das Basismodell und nicht mehr v1. Wenn du das willst,")
        told = await bot.command("rollback", "base yes")
        assert told.startswith("das Basismodell antwortet jetzt. Die Bewertungen, aus denen das")
        told = await bot.command("rollback", "all")
        assert told.startswith("Damit wird jede Version zurückgezogen, auch importierte:")
        told = await bot.command("rollback", "all yes")
        assert told == (
            "8 Bewertungen ausgelassen; zurückgezogen: v1. Das Basismodell antwortet. Mit `rollback since "
            "never` zählen sie wieder."
        )
        told = await bot.command("rollback", "since never")
        assert told == "8 ausgelassene Bewertungen zählen wieder; die nächsten Trainings verwenden sie."


async def test_what_waits_and_what_answers_is_german_for_who_reads_german(tmp_path: Path) -> None:
    async with open_bot(tmp_path, sections=GERMAN) as bot:
        assert await bot.command("waiting") == "Keine Antwort wartet auf deine Bewertung."
        for question in ("Why?", "How?"):
            await bot.say(question)
        shown = await bot.chat.command("waiting")
        assert shown.text.startswith(
            "2 Antworten warten auf deine Bewertung. Das ist Nummer 1:\n\n> How?\n\n"
        )
        assert [button.label for button in shown.offer] == ["👍 Gut", "👎 Schlecht", "Eine andere"]
        told = await bot.command("waiting", "9")
        assert told == "Tipp `waiting`, oder `waiting N` für eine andere davon."
        typed = bot.chat.typed("probe")
        probed = await bot.app.commands.execute(replace(typed, user=replace(typed.user, language="de")))
        assert probed.text == "das Basismodell antwortet, wie es sein soll"
