# SPDX-License-Identifier: Apache-2.0
"""`report` on a whole goodbot: what its parts are shown, who may ask, and a plugin's part that fails."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from goodbot import config, hookimpl
from goodbot.api.report import ReportedAnswer, ReportedBot, ReportPart, ReportSection, ReportSpec
from goodbot.base.errors import ConfigError, GoodbotError, UsageError
from goodbot.commands import report, report_parts
from goodbot.commands.runner import DeniedError
from goodbot.features.filters import plugin as filters
from goodbot.features.reports import plugin
from goodbot.store import reporting

from tests.core.builders import Bot, open_bot, plugins

SEEN: list[ReportedAnswer] = []
BOTS: list[ReportedBot] = []


class Seen(ReportPart):
    """Keeps what it is shown."""

    def add(self, answers: Sequence[ReportedAnswer]) -> None:
        SEEN.extend(answers)

    def told(self, bot: ReportedBot) -> ReportSection:
        BOTS.append(bot)
        return ReportSection(lines=[f"{len(SEEN)} answers"], data={"count": len(SEEN)})


class Broken(Seen):
    """Fails."""

    def told(self, bot: ReportedBot) -> ReportSection:
        raise KeyError("a slip")


@dataclass(frozen=True)
class Wanted:
    """Settings with nothing in them."""


class Stumbles(Seen):
    """Cannot be made."""

    def __init__(self, settings: Wanted) -> None:
        raise KeyError("a slip")


class Offers:
    """A plugin with a part of its own."""

    def __init__(self, *names: str, settings: type[Any] | None = None) -> None:
        self.names, self.settings = names, settings

    @hookimpl
    def register_report(self) -> Sequence[ReportSpec]:
        return [
            ReportSpec(
                name=name.lower(),
                title=f"All that is {name}",
                factory=f"{__name__}:{name}",
                settings=self.settings,
            )
            for name in self.names
        ]


@pytest.fixture(autouse=True)
def forgets() -> None:
    SEEN.clear()
    BOTS.clear()


async def asked(bot: Bot, words: str = "", **more: Any) -> tuple[str, dict[str, Any]]:
    result = await bot.app.commands.execute(bot.chat.typed("report", words, **more))
    return result.text, json.loads(json.dumps(result.data))


async def test_a_part_is_shown_every_answer_once_the_newest_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reporting, "PAGE", 3)
    async with open_bot(tmp_path, extra=(Offers("Seen"),)) as bot:
        await bot.command("enable", channel="#team")
        made = await bot.rated(8)
        await bot.chat.press(made[0], "star:4")
        await bot.train()
        both = await bot.say("both?", channel="#team")
        await bot.react(both, "👍")
        await bot.react(both, "👎", user="rater")
        text, data = await asked(bot)
        assert text == "All that is Seen\n9 answers"
        assert data == {"seen": {"count": 9}}
        assert [one.id for one in SEEN] == [both.turn, *(one.turn for one in reversed(made))]
        newest, first = SEEN[0], SEEN[-1]
        assert (newest.shared, newest.place, newest.good, newest.version) == (True, "#team", None, 1)
        assert (newest.readable, first.readable) == (True, True)
        assert newest.thumbs == {"loopback:owner": 1.0, "loopback:rater": -1.0}
        assert (first.question, first.good, first.stars) == ("question 0", True, 4.0)
        taught = await bot.trained(1)
        assert {one.id for one in SEEN if one.taught} == set(taught)
        assert {rater for one in SEEN for rater in one.taught or ()} == {"loopback:owner"}
        [told] = BOTS
        assert (told.live, told.line, told.learnt, told.more) == (1, [1], {1: len(taught)}, False)
        assert [(one.version, one.rated) for one in told.versions] == [(0, 8)]


async def test_a_private_chat_that_is_not_shared_is_only_its_own_persons_to_read(tmp_path: Path) -> None:
    async with open_bot(tmp_path, extra=(Offers("Seen"),)) as bot:
        await bot.say("mine")
        await bot.say("theirs", user="rater")
        await asked(bot)
        assert {one.question: one.readable for one in SEEN} == {"mine": True, "theirs": False}


async def test_what_a_filter_keeps_out_of_training_is_a_flag(tmp_path: Path) -> None:
    sections = {"filters": {"words": {"block": ["blockhead"]}}}
    async with open_bot(tmp_path, extra=(plugin, filters), sections=sections) as bot:
        named = await bot.say("You BLOCKHEAD, who are you?")
        await bot.react(named, "👎")
        await bot.say("Blockheads nobody rates")
        await bot.rated(8)
        text, data = await asked(bot, "flags")
        assert data["flags"]["rules"]["filtered"]["count"] == 0, "filters are asked when a training picks"
        await bot.train()
        text, data = await asked(bot, "flags")
        assert data["flags"]["rules"]["filtered"] == {"count": 1, "answers": [named.turn]}
        assert "Kept out of training by a filter, as for a blocked word: 1 answer" in text
        await bot.rollback(f"answers {named.turn}")
        text, data = await asked(bot, "flags")
        assert data["flags"]["rules"]["filtered"]["count"] == 0, "it is left out for good"


async def test_insults_that_an_owner_lists_are_a_flag_before_any_training(tmp_path: Path) -> None:
    sections = {"reports": {"flags": {"insults": ["blockhead"]}}}
    async with open_bot(tmp_path, extra=(plugin,), sections=sections) as bot:
        named = await bot.say("Say BLOCKHEAD to me")  # the answer repeats it
        await bot.react(named, "👍")
        await bot.rated(2)
        text, data = await asked(bot, "flags")
        assert data["flags"]["rules"]["insult"] == {"count": 1, "answers": [named.turn]}
        assert f"`rollback answers {named.turn}`" in text


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({"flag": {}}, "flags"),
        ({"flags": {"insult": ["a"]}}, "insults"),
        ({"flags": {"insults": ["?!"]}}, "no word"),
        ({"teachers": {}}, "no settings"),
    ],
)
async def test_a_mistake_in_its_sections_ends_the_start(
    tmp_path: Path, told: dict[str, Any], said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        async with open_bot(tmp_path, extra=(plugin,), sections={"reports": told}):
            pass


def test_a_part_that_stumbles_over_its_section_is_a_mistake_there(tmp_path: Path) -> None:
    offered = plugins(Offers("Stumbles", settings=Wanted))
    with pytest.raises(ConfigError, match="KeyError: 'a slip'"):
        report_parts.check(config.parse("[reports.stumbles]\n", home=tmp_path), offered)


async def test_a_report_of_many_looks_at_the_newest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reporting, "PAGE", 2)
    monkeypatch.setattr(report, "MOST", 4)
    async with open_bot(tmp_path, extra=(Offers("Seen"),)) as bot:
        await bot.rated(7)
        await asked(bot)
        assert (len(SEEN), BOTS[0].answers, BOTS[0].more) == (4, 4, True)


async def test_our_own_parts_say_something_from_the_first_day_on(tmp_path: Path) -> None:
    async with open_bot(tmp_path, extra=(plugin,)) as bot:
        text, data = await asked(bot)
        assert set(data) == {"teachers", "groups", "versions", "pairs", "flags"}
        assert "The base model answers: nobody has taught it." in text
        assert "There is no answer yet." in text
        assert "Place" not in text
        await bot.rated(8)
        await bot.train()
        text, data = await asked(bot)
        assert "v1 has learnt from 6 of the 8 stored answers.\n  100%  loopback:owner, 6 answers" in text
        assert data["teachers"]["people"][0]["share"] == 1.0
        assert data["groups"]["groups"]["place"][0]["group"] == "loopback, in private"
        assert [row["version"] for row in data["versions"]["versions"]] == [0]
        assert data["flags"]["rated"] == 8
        only, data = await asked(bot, "teachers")
        assert set(data) == {"teachers"}
        assert only.startswith("Who taught what\nv1 has learnt")


async def test_what_is_left_out_is_in_no_part(tmp_path: Path) -> None:
    async with open_bot(tmp_path, extra=(plugin,)) as bot:
        made = await bot.rated(3)
        await bot.rollback(f"answers {made[0].turn}")
        assert (await asked(bot, "flags"))[1]["flags"]["rated"] == 2


async def test_only_owners_get_one(tmp_path: Path) -> None:
    async with open_bot(tmp_path, extra=(plugin,)) as bot:
        await bot.say("secret")
        for who in ("rater", "talker", "stranger"):
            with pytest.raises(DeniedError):
                await asked(bot, user=who)


async def test_a_part_that_is_not_there_or_fails_is_named(tmp_path: Path) -> None:
    async with open_bot(tmp_path, extra=(Offers("Seen", "Broken"),)) as bot:
        with pytest.raises(UsageError, match="no part 'sen'; did you mean 'seen'"):
            await asked(bot, "sen")
        event = bot.chat.typed("report", "sen")
        german = replace(event, user=replace(event.user, language="de"))
        with pytest.raises(UsageError, match="keinen Teil 'sen'; meintest du 'seen'") as told:
            await bot.app.commands.execute(german)
        assert told.value.english.startswith("a report has no part 'sen'"), "what the trail keeps"
        with pytest.raises(GoodbotError, match="its part broken has failed"):
            await asked(bot)
        assert (await asked(bot, "seen"))[1]["seen"]["count"] == 0
    async with open_bot(tmp_path) as bot:
        assert (await asked(bot))[0] == "No plugin offers a part of a report."
