# SPDX-License-Identifier: Apache-2.0
"""adapters list, show, diff, pin, unpin, import; what pruning and rolling back leave alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from goodbot.api.adapters.manifest import MANIFEST
from goodbot.base.errors import AdapterError, ServerError, UsageError
from goodbot.config import AdaptersConfig
from goodbot.daemon.control import execute
from goodbot.learning.adapters import retention
from goodbot.store import adapters

from tests.core.builders import Bot, check, open_bot, rows, until
from tests.support import require


async def trained(bot: Bot, count: int = 1) -> None:
    for _ in range(count):
        await bot.rated(8)
        verdict = await bot.train()
        assert verdict.state == "activated", verdict.reason


async def typed(bot: Bot, *words: str) -> Any:
    """As the command line does it."""
    return await execute(bot.app, words[0], words[1:])


async def who_answers(bot: Bot) -> str:
    return (await bot.say("Who?")).text.partition(" ")[0]


async def test_the_list_tells_where_each_comes_from_and_how_it_was_rated(tmp_path: Path) -> None:
    async with open_bot(tmp_path, terminal=True) as bot:
        await trained(bot, 2)
        await bot.rollback("1")
        await trained(bot)
        for _ in range(3):
            await bot.react(await bot.say("Hello?"), "👍")
        result = await typed(bot, "adapters", "list")
        assert (await typed(bot, "adapters")).text == result.text
        lines = result.text.splitlines()
        assert lines[0].startswith(f"  base  {bot.app.model.name}  liked 4 of 8 rated answers")
        assert [line.split()[:3] for line in lines if " from " in line] == [
            ["v1", "from", "base"],
            ["│", "v2", "from"],
            ["→", "v3", "from"],
        ]
        assert "6 ratings" in lines[1], "two were kept to check it"
        [v3] = [line for line in lines if "v3" in line]
        assert "liked 3 of 3 rated answers" in v3
        found = {one["version"]: one for one in result.data["adapters"]}
        assert (found[3]["parent"], found[3]["active"], found[3]["liked"]["good"]) == (1, True, 3)
        assert found[1]["ratings"] == 6
        assert found[2]["verdict"]
        assert json.dumps(result.data)
        await check(bot)


async def test_show_tells_all_of_one_and_its_manifest_the_ratings(tmp_path: Path) -> None:
    async with open_bot(tmp_path, terminal=True) as bot:
        await trained(bot, 2)
        result = await typed(bot, "adapters", "show", "v2")
        assert "base → v1 → v2" in result.text
        assert "; 3 more were kept to check it" in result.text
        assert "answers now" in result.text
        assert (await typed(bot, "adapters", "show")).text == result.text, "the one that answers"
        known = result.data["manifest"]
        claimed = await rows(
            bot.store,
            "SELECT i.turn, l.event_seq FROM run_items i JOIN labels l ON l.turn = i.turn"
            " WHERE i.run = 2 AND i.split = 'train'",
        )
        assert known["ratings"] == {turn: [event] for turn, event in claimed}
        assert set(known["ratings"]) == set(await bot.trained_by(2))
        text = (Path(result.data["path"]) / MANIFEST).read_text()
        assert "question" not in text
        assert "says" not in text
        assert known["revision"].startswith("sha256:")
        with pytest.raises(AdapterError, match="no adapter v9"):
            await typed(bot, "adapters", "show", "9")
        with pytest.raises(UsageError, match="no version"):
            await typed(bot, "adapters", "show", "../1")


async def test_diff_tells_what_came_between_and_how_far_the_weights_moved(tmp_path: Path) -> None:
    require("numpy")
    async with open_bot(tmp_path, terminal=True) as bot:
        await trained(bot, 3)
        result = await typed(bot, "adapters", "diff", "1", "3")
        assert "v1 → v3: by way of v2, v3" in result.text
        once = {*await bot.trained_by(2), *await bot.trained_by(3)}
        assert f"learnt in between: {len(once)} rated answers" in result.text, "each counts once"
        distance = result.data["distance"]
        # Each matrix of the fake is one number: 2 * B.A of rank 2 is 4 x^2 in 16 places.
        first, third = 4 * 16**0.5 * 0.01**2, 4 * 16**0.5 * 0.03**2
        assert distance["before"] == pytest.approx(first, rel=1e-5)
        assert distance["size"] == pytest.approx(third, rel=1e-5)
        assert distance["change"] == pytest.approx(third - first, rel=1e-5)
        base = await typed(bot, "adapters", "diff", "base", "1")
        assert base.data["distance"]["change"] == pytest.approx(first, rel=1e-5)
        with pytest.raises(UsageError, match="two different"):
            await typed(bot, "adapters", "diff", "2", "2")


async def test_a_pinned_version_goes_on_answering_while_training_goes_on(tmp_path: Path) -> None:
    async with open_bot(tmp_path, terminal=True) as bot:
        await trained(bot)
        said = (await typed(bot, "adapters", "pin")).text
        assert "nothing new goes live until `adapters unpin`" in said
        for number in (2, 3):
            await bot.rated(8)
            said = (await typed(bot, "train", "wait")).text
            assert f"v{number} is trained" in said
            assert f"v{number} waits: v1 is pinned" in said
            assert await who_answers(bot) == "v1"
        found = {row.version: row for row in await bot.app.registry.rows()}
        assert found[3].parent == 2, "it goes on from what waits: no rating is lost on the way"
        assert "waits: the version that answers is pinned" in (await typed(bot, "adapters")).text
        with pytest.raises(UsageError, match="v1 is pinned: `adapters unpin`"):
            await typed(bot, "rollback", "base")
        assert not await bot.app.registry.activate(3, expected=1), "whoever asks for it"
        said = (await typed(bot, "adapters", "unpin")).text
        assert said == "v1 is no longer pinned. v3 answers now."
        assert await who_answers(bot) == "v3"
        assert not [row for row in await bot.app.registry.rows() if row.waits]
        await check(bot)


async def test_what_waits_goes_live_at_the_next_start_too(tmp_path: Path) -> None:
    async with open_bot(tmp_path, terminal=True) as bot:
        await trained(bot)
        await typed(bot, "adapters", "pin")
        await bot.rated(8)
        await bot.train()
        await bot.store.write(lambda db: adapters.pin(db, 1, None))  # while no server runs
    async with open_bot(tmp_path, terminal=True) as bot:
        assert await who_answers(bot) == "v1"
        await bot.app.maintenance.look_after_server()
        assert await who_answers(bot) == "v2"


async def test_a_server_that_fails_makes_it_wait_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_bot(tmp_path, terminal=True) as bot:
        await trained(bot)
        await typed(bot, "adapters", "pin")
        await bot.rated(8)
        await bot.train()

        async def fails(*args: object) -> None:
            raise ServerError("busy")

        with monkeypatch.context() as patch:
            patch.setattr(bot.app.registry, "prepare", fails)
            assert "tried again soon: busy" in (await typed(bot, "adapters", "unpin")).text
        assert await who_answers(bot) == "v1"
        assert await retention.go_live(bot.store, bot.app.registry) == 2
        assert await who_answers(bot) == "v2"


async def test_a_rating_that_is_taken_back_is_stronger_than_a_pin(tmp_path: Path) -> None:
    async with open_bot(tmp_path, terminal=True) as bot:
        made = await bot.rated(8)
        await bot.train()
        await typed(bot, "adapters", "pin")
        await bot.unreact(made[0], "👍")

        async def withdrawn() -> bool:
            return 1 not in (await bot.app.registry.active(), await bot.app.server.served())

        await until(withdrawn)
        assert await who_answers(bot) != "v1"
        await check(bot)


async def test_what_was_rolled_back_is_not_silently_learnt_again(tmp_path: Path) -> None:
    async with open_bot(tmp_path, terminal=True) as bot:
        await trained(bot, 2)
        await bot.rollback("base")
        assert await who_answers(bot) == "v0"
        learnt = {*await bot.trained_by(1), *await bot.trained_by(2)}
        await bot.rated(8)
        await bot.train()
        assert not learnt & set(await bot.trained_by(3))
        assert (await bot.app.registry.row(3)).parent == 0
        assert "stay used" in (await typed(bot, "rollback", "2")).text


async def test_of_many_versions_the_files_of_the_oldest_go_and_their_rows_stay(tmp_path: Path) -> None:
    sections = {"adapters": AdaptersConfig(keep=2)}
    async with open_bot(tmp_path, sections=sections, terminal=True) as bot:
        await trained(bot)
        await typed(bot, "adapters", "pin", "1")
        await typed(bot, "adapters", "unpin", "1")
        await trained(bot, 2)
        await typed(bot, "adapters", "pin", "1")
        await trained(bot)
        await bot.app.maintenance.look_after_server()
        there = {row.version for row in await bot.app.registry.rows() if row.erased_at is None}
        assert there == {1, 4}, "pinned, and active"
        listed = (await typed(bot, "adapters")).text
        assert listed.count("files removed") == 2
        with pytest.raises(AdapterError, match="the files of v3 are gone"):
            await typed(bot, "rollback", "3")
        assert (await typed(bot, "adapters", "show", "3")).data["path"] is None
        assert await who_answers(bot) == "v4"
        await typed(bot, "rollback", "1")
        assert await who_answers(bot) == "v1"
        await check(bot)


@pytest.mark.parametrize(
    "words",
    [
        "nonsense",
        "list 3",
        "show 1 2",
        "diff 1",
        "diff 1 x",
        "pin base",
        "pin 1 2",
        "unpin",
        "import",
        "import /tmp/x y",
        "export",
    ],
)
async def test_wrong_words_are_told_what_to_say(tmp_path: Path, words: str) -> None:
    async with open_bot(tmp_path, terminal=True) as bot:
        with pytest.raises(UsageError):
            await typed(bot, "adapters", *words.split())


async def test_a_chat_can_pin_and_cannot_import(tmp_path: Path) -> None:
    async with open_bot(tmp_path, terminal=True) as bot:
        await trained(bot)
        assert "v1 is pinned" in await bot.command("adapters", "pin 1")
        said = await bot.command("adapters", "import 1-0123456789abcdef")
        assert "in a terminal" in said
        assert "v1" in await bot.command("adapters", "list")
