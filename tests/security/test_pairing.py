# SPDX-License-Identifier: Apache-2.0
"""One-time codes: five wrong ones end them, an hour too, and they are stored nowhere."""

from __future__ import annotations

import string
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from goodbot.access import pairing
from goodbot.api.commands import Grant
from goodbot.api.events import MessageEvent, Outcome, UserRef
from goodbot.base import one_time
from goodbot.config import Grants
from goodbot.store import settings
from goodbot.testing import VirtualClock

from tests.core.builders import Bot, open_bot, rows

NEWCOMER = UserRef(connector="loopback", account="loopback", id="newcomer")
WRONG = ("AAAA2222", "AAAA3333", "AAAA4444", "AAAA5555", "AAAA6666")


async def code(bot: Bot) -> str:
    return await pairing.open_code(bot.store, "loopback", bot.app.clock.now())


def level(bot: Bot, user: UserRef = NEWCOMER) -> Grant:
    return bot.app.authorization.level(user)


async def send(bot: Bot, text: str, user: str = "newcomer", channel: str = "") -> Any:
    typed = bot.chat.typed("x", user=user, channel=channel)
    event = MessageEvent(
        event_id=typed.event_id,
        order=typed.order,
        user=typed.user,
        channel=typed.channel,
        text=text,
        message_id=typed.event_id,
        addressed=True,
    )
    [receipt] = await bot.chat.host.submit([event])
    return event, receipt


async def test_whoever_sends_the_code_owns_the_bot_from_then_on(tmp_path: Path) -> None:
    async with open_bot(tmp_path, grants=Grants()) as bot:
        assert (await bot.say("Hello?", user="newcomer")).turn == ""
        answer = await bot.say(await code(bot), user="newcomer")
        assert answer.text.startswith("You are my owner now")
        assert level(bot) is Grant.ADMINISTER
        talked = await bot.say("Hello?", user="newcomer")
        assert (await bot.react(talked, "👍", user="newcomer")).outcome is Outcome.ACCEPTED
        # The only talker is the owner: no consent is waited for.
        assert "1 of 8 ratings" in await bot.command("status", user="newcomer")
        assert "paused" in await bot.command("pause", user="newcomer")
    async with open_bot(tmp_path, grants=Grants()) as bot:
        assert level(bot) is Grant.ADMINISTER


async def test_a_code_works_once(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        used = await code(bot)
        event, first = await send(bot, used)
        [again] = await bot.chat.host.submit([event])
        assert (again.duplicate, again.text) == (True, first.text)
        assert (await send(bot, used, "second"))[1].outcome is Outcome.DENIED


async def test_a_code_of_a_time_to_come_is_none(tmp_path: Path) -> None:
    """It was made before our clock was set back, and would hold until then."""
    clock = VirtualClock(waits=True)
    async with open_bot(tmp_path, clock=clock) as bot:
        clock.jump(365 * 86400)
        right = await code(bot)
        clock.jump(-365 * 86400)
        assert (await send(bot, right))[1].outcome is Outcome.DENIED


async def test_a_second_code_ends_the_first(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        first, second = await code(bot), await code(bot)
        assert (await send(bot, first))[1].outcome is Outcome.DENIED
        assert (await send(bot, second))[1].outcome is Outcome.PAIRED


@pytest.mark.parametrize(
    "spell",
    [
        str,
        str.lower,
        lambda c: c.replace("-", ""),
        lambda c: f"  {c}\n",
        lambda c: " ".join(c),
        lambda c: c.replace("-", "\u2013"),
        lambda c: c.replace("-", "\u00a0"),
    ],
)
async def test_people_and_keyboards_may_spell_it_their_way(tmp_path: Path, spell: Any) -> None:
    async with open_bot(tmp_path) as bot:
        assert (await send(bot, spell(await code(bot))))[1].outcome is Outcome.PAIRED


async def test_after_five_wrong_ones_of_anybody_the_right_one_is_wrong(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        right = await code(bot)
        for number, wrong in enumerate(WRONG):
            assert (await bot.status())["pairing_locked"] == []
            await send(bot, wrong, f"stranger-{number}")
        assert (await bot.status())["pairing_locked"] == ["loopback"]
        assert "goodbot pair loopback" in await bot.command("status")
        assert (await send(bot, right))[1].outcome is Outcome.DENIED
        assert (await send(bot, await code(bot)))[1].outcome is Outcome.PAIRED


@pytest.mark.parametrize("there", [True, False])
async def test_a_wrong_code_is_answered_the_same_whether_there_is_one_or_not(
    tmp_path: Path, there: bool
) -> None:
    async with open_bot(tmp_path) as bot:
        right = await code(bot) if there else ""
        told = [(await send(bot, wrong))[1].text for wrong in WRONG]
        assert set(told) == {
            "This code does not work. Type it again, or get a new one: the owner makes it with"
            " `goodbot pair loopback`."
        }
        if there:  # locked
            assert (await send(bot, right, "another"))[1].text == told[0]


async def test_an_old_code_and_a_mistyped_one_are_answered_and_count_as_no_request(tmp_path: Path) -> None:
    clock = VirtualClock(waits=True)
    async with open_bot(tmp_path, clock=clock) as bot:
        old = await code(bot)
        clock.advance(pairing.PAIR_SECONDS + 1)
        for number, text in enumerate((old, "ABCD-234", "ABCD-23450", "abcd 23O5", "ABCD-2340")):
            receipt = (await send(bot, text, f"person-{number}"))[1]
            assert (receipt.outcome, receipt.text[:9]) == (Outcome.DENIED, "This code"), text
        assert (await send(bot, "Hello there", "person-0"))[1].text.startswith("This bot is private")


@pytest.mark.parametrize(
    "said", ["Room 101", "route 66", "meet at 10", "see you at 5", "I am 20 now", "a1 b2 c3 d4"]
)
def test_what_people_say_is_not_meant_as_a_code(said: str) -> None:
    assert not one_time.is_like(said)


async def test_after_five_wrong_codes_one_who_guesses_on_is_told_once_how_to_join(tmp_path: Path) -> None:
    clock = VirtualClock(waits=True)
    async with open_bot(tmp_path, clock=clock) as bot:
        for wrong in WRONG:
            await send(bot, wrong)
        assert (await send(bot, "AAAA7777"))[1].text.startswith("This bot is private")
        assert (await send(bot, "AAAA8888"))[1].text == ""
        assert (await send(bot, "AAAA8888", "another"))[1].text
        clock.advance(3600.0)
        assert (await send(bot, "AAAA9999"))[1].text.startswith("This code")


async def test_whoever_may_talk_asks_the_model_about_such_words(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        assert (await send(bot, WRONG[0], "talker"))[1].outcome is Outcome.ACCEPTED


async def test_the_lock_outlives_a_restart(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        right = await code(bot)
        for wrong in WRONG:
            await send(bot, wrong)
    async with open_bot(tmp_path) as bot:
        assert (await send(bot, right))[1].outcome is Outcome.DENIED


async def test_four_wrong_ones_leave_the_code_open(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        right = await code(bot)
        for wrong in WRONG[:4]:
            await send(bot, wrong)
        assert (await send(bot, right))[1].outcome is Outcome.PAIRED


async def test_plain_words_and_numbers_and_the_owner_count_as_no_guess(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        right = await code(bot)
        for text in ("everyday", "77345992", "hello there", "A" * 5000, "ABCD-234", "ABCD2340"):
            await send(bot, text)
            await send(bot, text, "talker")
        for wrong in WRONG:
            await send(bot, wrong, "owner")
        assert (await send(bot, right))[1].outcome is Outcome.PAIRED


async def test_m3_no_number_of_plain_words_or_numbers_locks_the_code(tmp_path: Path) -> None:
    """All are of the code's length and alphabet, and more than the guesses that lock it."""
    async with open_bot(tmp_path) as bot:
        right = await code(bot)
        for text in ("STRANGER", "aberdeen", "everyday", "TREASURE", "sandbags", "Umbrages"):
            await send(bot, text)
        for number in range(22334455, 22334455 + 2 * pairing.MAX_FAILURES):
            await send(bot, str(number))
        assert (await bot.status())["pairing_locked"] == []
        assert (await send(bot, right))[1].outcome is Outcome.PAIRED


async def test_without_an_open_code_nothing_is_counted(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        for wrong in WRONG:
            await send(bot, wrong)
        assert await rows(bot.store, "SELECT * FROM codes") == []
        assert (await send(bot, await code(bot)))[1].outcome is Outcome.PAIRED


async def test_it_holds_for_an_hour(tmp_path: Path) -> None:
    clock = VirtualClock(waits=True)
    async with open_bot(tmp_path, clock=clock) as bot:
        first = await code(bot)
        clock.advance(3601)
        assert (await send(bot, first))[1].outcome is Outcome.DENIED
        second = await code(bot)
        clock.advance(3590)
        assert (await send(bot, second))[1].outcome is Outcome.PAIRED


async def test_in_a_shared_channel_a_wrong_code_is_nothing(tmp_path: Path) -> None:
    """A crowd must not lock it."""
    async with open_bot(tmp_path) as bot:
        right = await code(bot)
        for wrong in WRONG:
            await send(bot, wrong, channel="#room")
        assert level(bot) is Grant.NONE
        assert (await send(bot, right))[1].outcome is Outcome.PAIRED


async def test_a_bot_is_never_an_owner(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        right = await code(bot)
        event, _ = await send(bot, "x")
        robot = replace(event.user, is_bot=True)
        [receipt] = await bot.chat.host.submit([replace(event, event_id="b", text=right, user=robot)])
        assert receipt.outcome is Outcome.IGNORED


async def test_the_code_is_nowhere_on_the_disk(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        right = await code(bot)
        await bot.say(right, user="newcomer")
        plain = right.replace("-", "")
        files = [path for path in (tmp_path / "bot").rglob("*") if path.is_file()]
        assert any("goodbot.db" in path.name for path in files)
        for path in files:
            content = path.read_bytes()
            assert right.encode() not in content
            assert plain.encode() not in content
        entries, whole = await bot.store.read(settings.audit)
        assert [(e.actor, e.action) for e in entries] == [("loopback:newcomer", "pair")]
        assert whole


async def test_a_chat_makes_no_code(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        assert "at the machine itself" in await bot.command("pair", "loopback")
        assert await rows(bot.store, "SELECT * FROM codes") == []


def test_a_code_is_made_of_characters_that_nobody_mixes_up() -> None:
    assert set(one_time.ALPHABET) == set(string.ascii_uppercase + string.digits) - set("01OIL")
    made = {one_time.fresh() for _ in range(300)}
    assert len(made) == 300
    for fresh in made:
        assert one_time.read(fresh) == fresh
        assert not fresh.isalpha()
        assert not fresh.isdecimal()


@pytest.mark.parametrize("words", ["{}", "my code is {}, is that right?", "`{}`", "(lower {})"])
async def test_p11_a_code_that_others_read_ends_and_is_stored_nowhere(tmp_path: Path, words: str) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.command("enable", channel="#room")
        right = await code(bot)
        text = words.format(right.lower().replace("-", " ") if "lower" in words else right)
        event, receipt = await send(bot, text, "lurker", "#room")
        assert (receipt.outcome, receipt.turn) == (Outcome.DENIED, "")
        assert "goodbot pair loopback" in receipt.text
        assert (await send(bot, right))[1].outcome is Outcome.DENIED, "whoever copies it owns nothing"
        assert level(bot) is Grant.NONE
        assert await rows(bot.store, "SELECT 1 FROM turns") == []
        assert await rows(bot.store, "SELECT 1 FROM inbox WHERE instr(receipt || payload, ?)", (right,)) == []
        [again] = await bot.chat.host.submit([event])
        assert (again.duplicate, again.text) == (True, receipt.text)


async def test_p11_so_does_a_code_that_links_and_one_in_a_command(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.command("enable", channel="#room")
        link = (await bot.command("link", user="owner")).split()[0]
        _, receipt = await send(bot, f"here: {link}", "owner", "#room")
        assert "/rl link" in receipt.text
        await bot.command("link", link, user="rater")
        assert await links(bot) == []
        right = await code(bot)
        [receipt] = await bot.chat.host.submit(
            [bot.chat.typed("start", right, user="owner", channel="#room")]
        )
        assert "goodbot pair loopback" in receipt.text
        assert (await send(bot, right))[1].outcome is Outcome.DENIED


async def test_p11_what_is_no_open_code_is_answered_and_ends_none(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.command("enable", channel="#room")
        right = await code(bot)
        for wrong in ("AAAA2222", "room 101b is where", "see you at 5"):
            assert (await send(bot, wrong, "rater", "#room"))[1].outcome is Outcome.ACCEPTED
        assert (await send(bot, right))[1].outcome is Outcome.PAIRED


async def links(bot: Bot) -> list[Any]:
    return await rows(bot.store, "SELECT * FROM links WHERE person = 'loopback:rater'")
