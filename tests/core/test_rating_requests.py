# SPDX-License-Identifier: Apache-2.0
"""Which answers ask for a rating: all, or one in five; and those that wait for one."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from goodbot.config import Grants, ServingConfig
from goodbot.store.query import fetch

from tests.core.builders import Bot, check_store, open_bot, rows

GRANTS = Grants(owners=("owner",), raters=("ada", "rater"), talkers=("talker",))


def selecting(home: Path, buttons: str = "fewer") -> AbstractAsyncContextManager[Bot]:
    serving = ServingConfig(history=0, ask="never", buttons=buttons)  # type: ignore[arg-type]
    return open_bot(home, grants=GRANTS, sections={"serving": serving})


async def asked(bot: Bot, count: int, user: str = "owner") -> list[bool]:
    """Which of so many answers have buttons."""
    return [bool((await bot.say(f"{user} asks {n}", user=user)).buttons) for n in range(count)]


async def test_as_installed_every_answer_asks_and_nothing_is_kept_of_it(tmp_path: Path) -> None:
    async with selecting(tmp_path, "all") as bot:
        assert all(await asked(bot, 7))
        assert await rows(bot.store, "SELECT * FROM rating_requests") == []


async def test_one_of_five_asks(tmp_path: Path) -> None:
    async with selecting(tmp_path) as bot:
        assert await asked(bot, 12) == [n % 5 == 0 for n in range(12)]


async def test_the_last_few_are_found_without_looking_at_all_that_was_said_there(tmp_path: Path) -> None:
    async with selecting(tmp_path) as bot:
        seen: list[str] = []
        writing: Any = bot.store._writing
        await writing.set_trace_callback(seen.append)
        await asked(bot, 2)
        await writing.set_trace_callback(None)
        looks = {sql for sql in seen if sql.startswith("SELECT") and "rating_requests" in sql}
        assert looks
        for sql in looks:
            plan = await bot.store.read(lambda db, s=sql: fetch(db, f"EXPLAIN QUERY PLAN {s}"))
            assert not [row[3] for row in plan if row[3].startswith(("SCAN", "USE TEMP"))], plan


async def test_people_have_their_own_five(tmp_path: Path) -> None:
    async with selecting(tmp_path) as bot:
        assert await asked(bot, 3) == [True, False, False]
        assert await asked(bot, 3, "ada") == [True, False, False]


async def test_another_start_goes_on_with_the_same_five(tmp_path: Path) -> None:
    async with selecting(tmp_path) as bot:
        assert await asked(bot, 3) == [True, False, False]
    async with selecting(tmp_path) as bot:
        assert await asked(bot, 3) == [False, False, True]


async def test_another_answer_asks_as_the_one_before(tmp_path: Path) -> None:
    async with selecting(tmp_path) as bot:
        for answer in [await bot.say(f"Say {n}") for n in range(2)]:
            await bot.react(answer, "👎")
            await bot.chat.again(answer, "long")
        assert [bool(one.buttons) for one in bot.chat.edits] == [True, False]
        assert await asked(bot, 3) == [False] * 3  # what took the place of another one is none of the five
        await check_store(bot.store)


async def waiting(bot: Bot, args: str = "", user: str = "owner") -> str:
    return await bot.command("waiting", args, user=user)


async def test_the_five_newest_wait_one_by_one(tmp_path: Path) -> None:
    async with selecting(tmp_path) as bot:
        answers = [await bot.say(f"question {n}") for n in range(7)]
        shown = await waiting(bot)
        assert shown == (
            "5 answers wait for your rating. This is number 1:\n\n> question 6\n\nv0 says: question 6"
        )
        assert "This is number 2:\n\n> question 5" in await waiting(bot, "2")
        told = await waiting(bot, f"bad {answers[6].turn}")
        assert told.startswith("Bad. ")
        assert "This is number 1:\n\n> question 5" in await waiting(bot)
        assert await bot.labels(answers[6]) == {"loopback:owner": -1.0}
        assert await waiting(bot, "6") == "type `waiting`, or `waiting N` for another one of them."


async def test_a_press_rates_and_shows_the_next(tmp_path: Path) -> None:
    async with selecting(tmp_path) as bot:
        first, second = [await bot.say(text) for text in ("Why?", "How are things?")]
        receipt = await bot.chat.command("waiting")
        good, bad, another = (button.action for button in receipt.offer)
        assert (good, bad) == (f"run:waiting good {second.turn}", f"run:waiting bad {second.turn}")
        assert another == "run:waiting 2"
        next_ = await bot.chat.press(second, good)
        assert await bot.labels(second) == {"loopback:owner": 1.0}
        assert next_.text.endswith(
            "1 answer waits for your rating. This is number 1:\n\n> Why?\n\nv0 says: Why?"
        )
        assert [button.action for button in next_.offer] == [
            f"run:waiting good {first.turn}",
            f"run:waiting bad {first.turn}",
        ]
        assert (await bot.chat.press(first, f"run:waiting good {first.turn}")).text.endswith(
            "No answer waits for your rating."
        )


async def test_of_a_bad_one_it_is_asked_what_was_wrong_before_the_next(tmp_path: Path) -> None:
    async with selecting(tmp_path) as bot:
        await bot.say("Why?")
        second = await bot.say("How are things?")
        told = await bot.chat.press(second, f"run:waiting bad {second.turn}")
        assert told.turn == second.turn
        *wrong, next_ = (button.action for button in told.offer)
        assert wrong
        assert next_ == "run:waiting"
        assert "> Why?" in (await bot.chat.press(second, next_)).text


async def test_nobody_is_shown_what_is_said_to_others_in_private(tmp_path: Path) -> None:
    async with selecting(tmp_path) as bot:
        await bot.command("enable", channel="#room")
        secret = await bot.say("my secret", user="ada")
        shared = await bot.say("in the room", user="ada", channel="#room")
        assert "in the room" in await waiting(bot, user="rater")
        assert "secret" not in await waiting(bot, "2", user="rater")
        assert "secret" not in await waiting(bot)
        refused = await waiting(bot, f"good {secret.turn}", user="rater")
        assert refused == f"there is no answer '{secret.turn}': see `history`."
        assert await bot.labels(secret) == {}
        await waiting(bot, f"good {shared.turn}", user="rater")
        assert await bot.labels(shared) == {"loopback:rater": 1.0}
        in_room = await bot.command("waiting", channel="#room", user="rater")
        assert in_room == "that is for the two of us: say it in our private chat."
        assert "wait" not in await waiting(bot, user="talker")


async def test_what_is_forgotten_takes_its_request_along(tmp_path: Path) -> None:
    async with selecting(tmp_path) as bot:
        await asked(bot, 3, "ada")
        assert len(await rows(bot.store, "SELECT * FROM rating_requests")) == 3
        await bot.command("forget", "me", user="ada")
        await bot.command("forget", "me yes", user="ada")
        assert await rows(bot.store, "SELECT * FROM rating_requests") == []
        await check_store(bot.store)
