# SPDX-License-Identifier: Apache-2.0
"""`export --since …`: which answers are meant; the file, its hash and its card."""

from __future__ import annotations

import hashlib
import stat
from pathlib import Path

import pytest
from goodbot.api.export import ExportedAnswer, ExportForm, Line
from goodbot.api.hookspecs import hookimpl
from goodbot.base.errors import GoodbotError, UsageError

from tests.core.builders import Bot, open_bot
from tests.core.exporting.made import export, opened, rated


async def ids(bot: Bot, words: str) -> set[str]:
    return {line["id"] for line in (await export(bot, words))[0]}


async def test_each_choice_selects_what_it_says(tmp_path: Path) -> None:
    async with opened(tmp_path) as bot:
        said = await rated(bot)
        rated_ones = {said.liked.turn, said.bad.turn, said.again.turn, said.tie.turn, said.private.turn}
        assert await ids(bot, "") == rated_ones | {said.commented.turn}
        good = {said.liked.turn, said.again.turn, said.private.turn}
        assert await ids(bot, "--rating good") == good
        assert await ids(bot, "--rating bad") == {said.bad.turn}
        assert await ids(bot, "--rating tie") == {said.tie.turn}
        assert await ids(bot, "--rating none") == {said.commented.turn}
        assert await ids(bot, "--person loopback:rater") == {said.liked.turn, said.tie.turn}
        assert await ids(bot, "--person loopback:talker") == {said.private.turn}
        assert await ids(bot, "--text is it to ŁÓDŹ") == {said.liked.turn}, "several words, small and capital"
        assert await ids(bot, "--text 100% not there") == set()
        assert await ids(bot, "--version base --rating good") == good
        assert await ids(bot, "--version v1") == await ids(bot, "--version others") == set()
        assert await ids(bot, "--place slack") == set()
        place = next(line["place"] for line in (await export(bot))[0] if line["id"] == said.liked.turn)
        assert said.liked.turn in await ids(bot, f"--place loopback:{place}")
        assert len(await ids(bot, "--place loopback")) == 6


async def test_days_bound_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened(tmp_path) as bot:
        made: list[str] = []
        for at in (1_800_000_000.0, 1_800_100_000.0, 1_800_200_000.0):
            monkeypatch.setattr(bot.app.clock, "now", lambda at=at: at)
            answer = await bot.say("question")
            await bot.react(answer, "👍")
            made.append(answer.turn)
        assert await ids(bot, "--since 2027-01-16T00:00+00:00") == set(made[1:])
        assert await ids(bot, "--until 2027-01-16T00:00+00:00") == {made[0]}
        assert await ids(bot, "--since 2027-01-16T00:00Z --until 2027-01-17T00:00Z") == {made[1]}


@pytest.mark.parametrize(
    "words",
    [
        "--since yesterday",
        "--rating great",
        "--version latest",
        "--version v",
        "--format parquet",
        "--nothing x",
        "--text",
        "--text a --text b",
        "kto",
        "--redact yes",
    ],
)
async def test_what_is_not_understood_writes_nothing(tmp_path: Path, words: str) -> None:
    async with opened(tmp_path) as bot:
        with pytest.raises(UsageError):
            await export(bot, words)
        assert not (tmp_path / "bot" / "exports").exists()


async def test_the_same_selection_is_the_same_bytes_under_another_name(tmp_path: Path) -> None:
    async with opened(tmp_path) as bot:
        await rated(bot)
        for words in ("", "--format kto", "--format argilla --redact"):
            (_, one), (_, two) = await export(bot, words), await export(bot, words)
            assert one["path"] != two["path"]
            assert one["sha256"] == two["sha256"]
            data = Path(one["path"]).read_bytes()
            assert hashlib.sha256(data).hexdigest() == one["sha256"]
            assert data == Path(two["path"]).read_bytes()
        (_, good) = await export(bot, "--rating good")
        assert good["sha256"] != one["sha256"]


async def test_a_card_says_what_it_is(tmp_path: Path) -> None:
    async with opened(tmp_path) as bot:
        await rated(bot)
        _, data = await export(bot, "--format kto --rating good --text a | b")
        card = Path(data["card"])
        assert stat.S_IMODE(card.stat().st_mode) == 0o600
        text = card.read_text()
        assert f"`{data['sha256']}`" in text
        assert "| selected | rating good, text a \\| b |" in text
        _, data = await export(bot, "--format kto")
        text = Path(data["card"]).read_text()
        assert "3 lines in the form `kto`, from 5 answers" in text
        assert "bad (1), good (2), none (1), tie (1)" in text
        assert "(5) |" in text
        assert "licence" in text


async def test_nothing_is_left_of_a_form_that_fails(tmp_path: Path) -> None:
    class Broken:
        @hookimpl
        def register_export_form(self) -> ExportForm:
            return ExportForm(name="broken", summary="a form that fails", lines=self.lines)

        def lines(self, answer: ExportedAnswer) -> list[Line]:
            raise KeyError("nothing")

    async with open_bot(tmp_path, extra=(Broken(),)) as bot:
        await bot.react(await bot.say("question"), "👍")
        with pytest.raises(GoodbotError, match="the form broken has failed"):
            await export(bot, "--format broken")
        assert list((tmp_path / "bot" / "exports").iterdir()) == []


async def test_who_asked_is_not_to_be_known(tmp_path: Path) -> None:
    async with opened(tmp_path) as bot:
        await rated(bot)
        secret = "ghp_" + "A1b2C3d4E5" * 4
        answer = await bot.say("I am talker, ask rater", user="rater")
        await bot.react(answer, "👍", user="rater")
        await bot.app.store.write(
            lambda db: db.execute(
                "UPDATE turns SET response = response || ? WHERE id = ?",
                (f" {secret} loopback:owner", answer.turn),
            )
        )
        lines, data = await export(bot, "--redact")
        text = Path(data["path"]).read_text()
        assert secret not in text
        assert not {"loopback:owner", "loopback:rater", "loopback:talker"} & set(
            text.replace('"', " ").split()
        )
        assert "***" in lines[-1]["answer"]
        assert lines[-1]["tokens"] == []
        raters = {who for line in lines for who in line["ratings"]}
        assert all(who.startswith("person-") for who in raters)
        assert len(raters) == 2
        assert "redacted | yes" in Path(data["card"]).read_text()
