# SPDX-License-Identifier: Apache-2.0
"""`export --since …`: which answers are meant; the file, its hash and its card."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from pathlib import Path

import pytest
from goodbot.api.export import ExportedAnswer, ExportForm, Line
from goodbot.api.hookspecs import hookimpl
from goodbot.base.errors import GoodbotError, UsageError
from goodbot.commands.export import OWN
from goodbot.commands.masking import Masker
from goodbot.commands.snapshot import Snapshot
from goodbot.store.exporting import Identities

from tests.core.builders import Bot, open_bot, rows
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
        assert await ids(bot, "--topic ŁÓDŹ") == {said.liked.turn}
        assert await ids(bot, "--topic łód") == set(), "a part of a word"
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


async def test_who_comes_later_is_masked_where_they_were_named_before(tmp_path: Path) -> None:
    """By whole words: an id in another word is none, and a number is masked once."""
    async with opened(tmp_path) as bot:
        first = await bot.say("ask rater, also @talker; <@U0NOBODY> and moderator know, so does rater.")
        later = [await bot.say(f"question {user}", user=user) for user in ("rater", "talker")]
        for answer in (first, *later):
            await bot.react(answer, "👍")
        lines, data = await export(bot, "--redact --person loopback:talker")
        [third] = lines
        lines, data = await export(bot, "--redact")
        [said] = [one["messages"][-1]["content"] for one in lines if one["id"] == first.turn]
        people = {one["id"]: one["talker"] for one in lines}
        rater, talker = (people[one.turn] for one in later)
        assert said == f"ask {rater}, also @{talker}; <somebody> and moderator know, so does {rater}."
        assert third["talker"] == talker, "the same number whatever is selected"
        _, data = await export(bot, "--redact --person loopback:talker --text Baker Street")
        card = Path(data["card"]).read_text()
        assert "selected | person ***, text ***" in card
        assert "Baker" not in card


def test_ids_are_masked_wherever_they_stand_and_json_stays_json() -> None:
    people = [
        ("telegram:123456789", "telegram:123456789"),
        ("web:max", "slack:U0AMY1"),
        ("terminal:owner", "x:y"),
    ]
    places = [("account", "local"), ("place", "-1001234567890"), ("thread", "1732612345.123456")]
    masker = Masker(Identities(people=people, places=places))
    said = (
        'In -1001234567890. {"chat_id":-1001234567890} ts=1732612345.123456, U0AMY1, <@U9|Max S>; local owner'
    )
    call = {
        "id": "123456789",
        "function": {"name": "send", "arguments": '{"to": 123456789, "123456789": [true]}'},
    }
    message = {"role": "assistant", "content": said, "tool_calls": [call]}
    [masked] = masker._messages([message])
    assert masked["role"] == "assistant"
    assert masked["content"] == (
        'In place-2. {"chat_id":place-2} ts=thread-3, person-2, <somebody>; local owner'
    )
    [made] = masked["tool_calls"]
    assert made["id"] == "123456789", "the answer to it names it"
    assert json.loads(made["function"]["arguments"]) == {"to": "person-1", "person-1": [True]}


async def test_all_accounts_of_a_person_are_one_number(tmp_path: Path) -> None:
    async with opened(tmp_path) as bot:
        answer = await bot.say("Who?", user="talker")
        await bot.react(answer, "👍")
        link = "INSERT INTO links (person, identity, since) VALUES ('loopback:talker', 'loopback:owner', 1)"
        await bot.app.store.write(lambda db: db.execute(link))
        [line], _ = await export(bot, "--redact")
        assert {line["talker"]} == set(line["ratings"])


async def test_words_that_were_looked_for_are_in_no_audit_trail(tmp_path: Path) -> None:
    async with opened(tmp_path) as bot:
        await export(bot, "--text Ada Lovelace")
        with pytest.raises(UsageError):
            await export(bot, "--text Ada --nothing Lovelace")
        trail = str(await rows(bot.store, "SELECT * FROM audit"))
        assert "export" in trail
        assert "Ada" not in trail
        assert "Lovelace" not in trail


async def test_quotes_that_a_chat_leaves_are_no_words(tmp_path: Path) -> None:
    async with opened(tmp_path) as bot:
        said = await rated(bot)
        assert await ids(bot, "--text “to Łódź”") == await ids(bot, '--text "to Łódź"') == {said.liked.turn}
        assert await ids(bot, "--person loopback:rater") == {said.liked.turn, said.tie.turn}
        assert await ids(bot, "--person rater") == {said.liked.turn, said.tie.turn}, "of this platform"
        result = await bot.app.commands.execute(bot.chat.typed("export", "--format dpo --rating good"))
        assert result.text.startswith("1 line from 2 rated answers: exports/")


async def test_a_full_disk_leaves_nothing_half_written(tmp_path: Path) -> None:
    snapshot = Snapshot(tmp_path / "exports" / "x.jsonl", OWN)
    os.dup2(os.open("/dev/full", os.O_WRONLY), snapshot._file._file.fileno())
    snapshot._file.write(b"what somebody said")
    snapshot.drop()
    assert list((tmp_path / "exports").iterdir()) == []
