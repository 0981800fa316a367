# SPDX-License-Identifier: Apache-2.0
"""What a judge found bad and nobody has rated: a flag of the report, to look at, to rate or to leave out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from goodbot.api.events import UserRef
from goodbot.api.rated import RatedWanted
from goodbot.features.reports import plugin as reports

from tests.core.builders import Bot
from tests.core.judging.stage import judge_server, judged, judged_bot, look
from tests.core.judging.test_judging import asking


async def flagged(bot: Bot) -> tuple[str, Any]:
    found = await bot.app.commands.execute(bot.chat.typed("report", "flags"))
    return found.text, found.data["flags"]["rules"]["judged"]


async def shown(bot: Bot, *turns: str, by: str = "owner") -> list[str]:
    """The questions on the page of these answers."""
    person = UserRef(connector="loopback", account="loopback", id=by)
    return [one.question for one in (await bot.chat.host.rated(person, RatedWanted(turns=turns))).answers]


async def test_it_is_one_until_somebody_rates_it_or_leaves_it_out(tmp_path: Path) -> None:
    async with (
        judge_server(says=["bad"]) as server,
        judged_bot(tmp_path, judge=asking(server.url), extra=(reports,)) as bot,
    ):
        answer = await bot.say("Name a river.")
        later = await bot.say("No, shorter.")
        assert (await flagged(bot))[1] == {"count": 0, "answers": []}
        await look(bot)
        assert await judged(bot) == {answer.turn: ("judged", -1)}
        text, found = await flagged(bot)
        assert found == {"count": 1, "answers": [answer.turn]}
        assert "Found bad by the judge, and rated by nobody: 1 answer." in text
        assert await shown(bot, answer.turn, later.turn) == ["Name a river."]
        assert await shown(bot) == [], "where nobody asks for it, it is not among the rated ones"
        assert await shown(bot, answer.turn, by="rater") == []
        await bot.rollback(f"answers {answer.turn}")
        assert (await flagged(bot))[1]["count"] == 0
        await bot.command("rollback", f"answers {answer.turn} never")
        assert (await flagged(bot))[1]["count"] == 1
        await bot.react(answer, "👍")
        assert (await flagged(bot))[1]["count"] == 0, "what a person says wins"
