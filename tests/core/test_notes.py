"""What somebody did not like is a line of their next prompt: at once, with its ratings, in their hands."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from goodbot.api.events import Outcome
from goodbot.config import Grants, ServingConfig
from goodbot.conversation.note_rules import RULES
from goodbot.conversation.notes import Where
from goodbot.daemon.loopback import Answer
from goodbot.store import backup, forgetting, people, turns
from goodbot.testing import VirtualClock

from tests.core.builders import Bot, check_store, open_bot, rows
from tests.training.zoo.dialects import CHATML, DIALECTS

GRANTS = Grants(owners=("owner",), raters=("ada", "rater"), talkers=("talker",))
SHORT, LONG = RULES["long"].text, RULES["short"].text


@asynccontextmanager
async def noting(
    home: Path, *, template: str = CHATML, where: Where = "private", **more: Any
) -> AsyncGenerator[Bot]:
    """A goodbot on a model whose template is this one."""
    (home / "fake").mkdir(parents=True, exist_ok=True)
    (home / "fake" / "tokenizer_config.json").write_text(json.dumps({"chat_template": template}))
    serving = ServingConfig(history=0, ask="never", notes=where, **more.pop("serving", {}))
    async with open_bot(home, grants=GRANTS, sections={"serving": serving}, **more) as bot:
        yield bot


async def bad(bot: Bot, user: str = "owner", **fields: Any) -> Answer:
    answer = await bot.say("What is love?", user=user, **fields)
    await bot.react(answer, "👎", user=user)
    return answer


async def chip(bot: Bot, hint: str, user: str = "owner", **fields: Any) -> tuple[Answer, str]:
    """A bad answer and a press under it; the answer and what the press was told."""
    answer = await bad(bot, user, **fields)
    told = await bot.chat.press(answer, f"again:{hint}", user=user)
    return answer, told.text


async def system(bot: Bot, user: str = "owner", **fields: Any) -> str:
    """What the system says before the next answer to somebody."""
    answer = await bot.say("And now?", user=user, **fields)
    made = await bot.store.read(lambda db: turns.get(db, answer.turn))
    assert made is not None
    return "".join(str(m["content"]) for m in made.messages if m["role"] == "system")


async def test_a_chip_is_a_line_of_the_next_prompt_at_once(tmp_path: Path) -> None:
    clock = VirtualClock(waits=True)  # no time passes by itself
    async with noting(tmp_path, clock=clock, serving={"system_prompt": "Be kind."}) as bot:
        assert await system(bot) == "Be kind."
        answer, told = await chip(bot, "long")
        assert told == "Noted: shorter answers. `/rl notes` shows what I keep in mind."
        before = clock.now()
        said = await system(bot)
        assert clock.now() == before
        assert said.startswith("Be kind.\n\n")
        assert said.endswith(f'"{SHORT}"')
        assert "\n" not in said.removeprefix("Be kind.\n\n")
        [(event,)] = await rows(bot.store, "SELECT event_seq FROM labels")
        assert await rows(bot.store, "SELECT event FROM note_ratings") == [(event,)]
        assert await system(bot, "ada") == "Be kind.", "it is one person's"
        await bot.unreact(answer, "👎")
        assert await system(bot) == "Be kind.", "the line goes with its rating"
        await bot.command("bad", answer.turn)
        assert SHORT in await system(bot)
        await bot.command("good", answer.turn)
        assert await system(bot) == "Be kind."
        await check_store(bot.store)


async def test_a_reason_and_a_better_answer_are_lines_too(tmp_path: Path) -> None:
    async with noting(tmp_path) as bot:
        answer = await bot.say("What is love?")
        told = await bot.command("reason", "no lists,\nplease")
        assert "Noted" not in told, "it is not called bad"
        assert await system(bot) == ""
        await bot.react(answer, "👎")
        assert '"no lists, please"' in await system(bot)
        second = await bad(bot)
        assert "Noted: your words." in await bot.command("reason", f"{second.turn} say my name")
        assert "Noted: more like your answer." in await bot.command("better", f"{second.turn} Baby do not")
        assert "Noted: more detail." in await bot.command("better", f"{second.turn} {'long ' * 30}")
        said = await system(bot)
        assert said.index(LONG) < said.index("Answer more like this: Baby") < said.index("say my name")
        assert "Taken back" in await bot.command("undo", second.turn)
        assert await system(bot) == 'What readers have asked of your answers: "no lists, please"'


async def test_the_opposite_takes_the_place_and_gives_it_back(tmp_path: Path) -> None:
    async with noting(tmp_path) as bot:
        await chip(bot, "long")
        later, _ = await chip(bot, "short")
        said = await system(bot)
        assert (SHORT in said, LONG in said) == (False, True)
        assert SHORT not in await bot.command("notes")
        await bot.unreact(later, "👎")
        assert SHORT in await system(bot)


async def test_there_are_eight_at_most(tmp_path: Path) -> None:
    async with noting(tmp_path) as bot:
        answer = await bad(bot)
        for n in range(11):
            await bot.command("reason", f"{answer.turn} w{n}")
        said = await system(bot)
        assert [f'"w{n}"' in said for n in range(11)] == [n > 2 for n in range(11)]
        assert len(await rows(bot.store, "SELECT id FROM notes")) == 8


async def test_who_is_no_rater_writes_none(tmp_path: Path) -> None:
    async with noting(tmp_path) as bot:
        answer, _ = await chip(bot, "long", "talker")
        receipt = await bot.chat.press(answer, "again:long", user="talker")
        assert receipt.outcome is Outcome.DENIED
        assert "Noted" not in await bot.command("reason", "shorter", user="talker")
        assert await rows(bot.store, "SELECT id FROM notes") == []
        assert await system(bot, "talker") == ""


async def test_a_press_without_a_bad_rating_of_ones_own_notes_nothing(tmp_path: Path) -> None:
    async with noting(tmp_path) as bot:
        answer = await bot.say("What is love?")
        receipt = await bot.chat.press(answer, "again:long")
        assert (receipt.outcome, receipt.text) == (Outcome.ACCEPTED, "")
        assert await rows(bot.store, "SELECT id FROM notes") == []


@pytest.mark.parametrize("template", ["", DIALECTS["gemma"].template, DIALECTS["no roles"].template])
async def test_a_model_that_cannot_follow_one_is_told_nothing_and_nobody_is(
    tmp_path: Path, template: str
) -> None:
    async with noting(tmp_path, template=template) as bot:
        _, told = await chip(bot, "long")
        assert told == ""
        assert "Noted" not in await bot.command("reason", "shorter")
        assert await system(bot) == ""


async def test_it_can_be_switched_off(tmp_path: Path) -> None:
    async with noting(tmp_path, where="never") as bot:
        assert (await chip(bot, "long"))[1] == ""
        assert await system(bot) == ""


async def test_shared_channels_have_none_until_an_owner_allows_it(tmp_path: Path) -> None:
    async with noting(tmp_path) as bot:
        await bot.command("enable", channel="#room")
        assert (await chip(bot, "long", "ada", channel="#room"))[1] == ""
        await chip(bot, "long", "ada")
        assert SHORT in await system(bot, "ada")
        assert await system(bot, "ada", channel="#room") == ""


async def test_in_a_shared_channel_a_private_line_needs_the_word_that_it_may(tmp_path: Path) -> None:
    async with noting(tmp_path, where="everywhere") as bot:
        await bot.command("enable", channel="#room")
        await chip(bot, "long", "ada")
        assert await system(bot, "ada", channel="#room") == ""
        await bot.command("share", "on", user="ada")
        assert SHORT in await system(bot, "ada", channel="#room")
        await bot.command("share", "off", user="ada")
        assert await system(bot, "ada", channel="#room") == ""
        assert SHORT in await system(bot, "ada"), "in private it is hers all the same"
        await chip(bot, "wrong", "ada", channel="#room")
        assert RULES["wrong"].text in await system(bot, "ada", channel="#room")
        assert await system(bot, "rater", channel="#room") == ""


async def test_its_person_changes_it(tmp_path: Path) -> None:
    async with noting(tmp_path) as bot:
        answer, _ = await chip(bot, "long", "ada")
        [(number,)] = await rows(bot.store, "SELECT id FROM notes")
        assert await bot.command("notes", user="ada") == f"{number}  “{SHORT}”  from 1 rating"
        assert "nothing in mind" in await bot.command("notes", user="rater")
        assert "no line" in await bot.command("notes", f"delete {number}", user="rater")
        await bot.command("notes", f"off {number}", user="ada")
        assert await system(bot, "ada") == ""
        assert "(off)" in await bot.command("notes", user="ada")
        await bot.command("notes", f"on {number}", user="ada")
        assert SHORT in await system(bot, "ada")
        await bot.command("notes", f'edit {number} two <|im_end|> "lines"', user="ada")
        assert "\"two im_end 'lines'\"" in await system(bot, "ada")
        await bot.unreact(answer, "👎", user="ada")
        assert "two im_end" in await system(bot, "ada"), "edited, it stays theirs"
        await bot.command("notes", f"delete {number}", user="ada")
        assert await system(bot, "ada") == ""
        assert await rows(bot.store, "SELECT * FROM note_ratings") == []
        assert "say `notes`" in await bot.command("notes", "please", user="ada")


async def test_an_owner_lets_a_chips_line_hold_for_others(tmp_path: Path) -> None:
    async with noting(tmp_path, where="everywhere") as bot:
        await bot.command("enable", channel="#room")
        await chip(bot, "long")
        [(number,)] = await rows(bot.store, "SELECT id FROM notes")
        assert "only an owner" in await bot.command("notes", f"move {number} channel", user="ada")
        assert "in the channel" in await bot.command("notes", f"move {number} channel")
        assert "for this channel" in await bot.command("notes", f"move {number} channel", channel="#room")
        assert SHORT in await system(bot, "ada", channel="#room")
        assert await system(bot) == ""
        await bot.command("notes", f"move {number} everybody", channel="#room")
        assert SHORT in await system(bot, "talker")
        assert "others share" in await bot.command("notes", f"edit {number} be rude")
        assert (await rows(bot.store, "SELECT count(*) FROM audit WHERE action = 'notes'")) == [(2,)]
        answer = await bad(bot)
        await bot.command("reason", f"{answer.turn} tell them my secret")
        [(own,)] = await rows(bot.store, "SELECT max(id) FROM notes")
        assert "in your words" in await bot.command("notes", f"move {own} everybody")


async def test_forgetting_takes_all_lines(tmp_path: Path) -> None:
    async with noting(tmp_path) as bot:
        await chip(bot, "long", "ada")
        await bot.command("reason", "Moustache-7731", user="ada")
        [(edited,), *_] = await rows(bot.store, "SELECT id FROM notes ORDER BY id")
        await bot.command("notes", f"edit {edited} Whiskers-7731", user="ada")
        await chip(bot, "long")
        assert "cannot be undone" in await bot.command("forget", "me", user="ada")
        await bot.command("forget", "me yes", user="ada")
        left = await rows(bot.store, "SELECT scope, key, text FROM notes")
        assert left == [("person", "loopback:owner", SHORT)]
        assert not await bot.store.read(lambda db: forgetting.knows(db, "loopback:ada"))
        assert not [p for p in (tmp_path / "bot").rglob("goodbot.db*") if b"-7731" in p.read_bytes()]


async def test_linked_accounts_share_their_lines(tmp_path: Path) -> None:
    async with noting(tmp_path) as bot:
        await chip(bot, "long", "ada")
        await bot.store.write(lambda db: people.link(db, "loopback:ada", "loopback:rater", 1.0))
        assert SHORT in await system(bot, "rater")


async def test_it_outlives_a_restart_and_is_in_a_backup(tmp_path: Path) -> None:
    async with noting(tmp_path) as bot:
        await chip(bot, "long")
        made = backup.copy(bot.store.path, tmp_path / "copy.db")
        assert (made.rows["notes"], made.rows["note_ratings"]) == (1, 1)
    async with noting(tmp_path) as bot:
        assert SHORT in await system(bot)


async def test_a_line_goes_with_the_last_of_its_ratings_however_that_goes(tmp_path: Path) -> None:
    async with noting(tmp_path) as bot:
        one, _ = await chip(bot, "long")
        two, _ = await chip(bot, "long")
        assert len(await rows(bot.store, "SELECT * FROM note_ratings")) == 2
        await bot.store.write(lambda db: db.execute("DELETE FROM turns WHERE id = ?", (one.turn,)))
        assert SHORT in await system(bot)
        await bot.store.write(lambda db: db.execute("DELETE FROM turns WHERE id = ?", (two.turn,)))
        assert await rows(bot.store, "SELECT * FROM notes") == []


async def test_ratings_that_an_owner_leaves_out_leave_no_line(tmp_path: Path) -> None:
    async with noting(tmp_path) as bot:
        await chip(bot, "long")
        await bot.command("reset", "yes")
        await bot.command("reset", "yes")
        assert await rows(bot.store, "SELECT 1 FROM quarantines") == [(1,)]
        assert await system(bot) == ""
