"""`export`: a file on the bot's own machine, for its owner, which forgetting takes along."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

from tests.core.builders import Bot, open_bot


async def exported(bot: Bot) -> list[dict[str, Any]]:
    result = await bot.app.commands.execute(bot.chat.typed("export"))
    path = Path(result.data["path"])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.name in result.text
    assert str(path) not in result.text, "a chat need not know where"
    lines = path.read_text(encoding="utf-8").splitlines()
    assert len(lines) == result.data["answers"]
    return [json.loads(line) for line in lines]


async def test_what_was_rated_and_said_is_exported_whole(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        assert await exported(bot) == []
        answer = await bot.say("How far\nis it? 🙂")
        await bot.say("Nobody rates this one")
        await bot.react(answer, "👎")
        await bot.chat.press(answer, "star:2")
        await bot.chat.comment(answer, "It is 4 km.", better=True)
        new = await bot.chat.again(answer, "short")
        await bot.say("next")  # the retry is recorded then
        await bot.react(new, "👍", user="rater")
        first, second = await exported(bot)
        assert first["messages"] == [{"role": "user", "content": "How far\nis it? 🙂"}]
        assert (first["answer"], first["instead_of"]) == (answer.text, None)
        assert first["ratings"] == {"loopback:owner": [-1.0, -0.5]}
        assert first["remarks"] == [
            {"kind": "better", "rater": "loopback:owner", "text": "It is 4 km."}
        ]
        assert (second["instead_of"], second["ratings"]) == (answer.turn, {"loopback:rater": 1.0})


async def test_only_owners_export(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        for user in ("stranger", "talker", "rater"):
            assert await bot.command("export", user=user) == ""
        assert not (tmp_path / "bot" / "exports").exists()
        assert "0 rated answers: exports/" in await bot.command("export")


async def test_forgetting_deletes_what_was_exported(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        answer = await bot.say("My name is Ada", user="rater")
        await bot.react(answer, "👍", user="rater")
        assert len(await exported(bot)) == 1
        await bot.command("forget", "me", user="rater")
        said = await bot.command("forget", "me yes", user="rater")
        assert "What was exported is deleted too." in said
        assert list((tmp_path / "bot" / "exports").iterdir()) == []
