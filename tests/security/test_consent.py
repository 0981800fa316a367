# SPDX-License-Identifier: Apache-2.0
"""Core rule 12: private words train what others talk to only with their speaker's consent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from goodbot.api.events import MessageEvent, OrderKey, Outcome
from goodbot.store import people
from goodbot.testing import VirtualClock

from tests.core.builders import Bot, open_bot, rows, until


async def ratings(bot: Bot) -> tuple[int, int]:
    """`(may train, wait for consent)`"""
    status = await bot.status()
    return status["ratings"], status["waiting_for_consent"]


async def rated(bot: Bot, user: str, *, channel: str = "") -> None:
    answer = await bot.say("Hello?", user=user, channel=channel)
    assert answer.turn
    await bot.react(answer, "👍", user="owner")


async def test_an_owner_alone_needs_no_consent(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await rated(bot, "owner")
        assert await ratings(bot) == (1, 0)


async def test_that_another_talks_takes_no_rating_of_the_owner_away(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await rated(bot, "owner")
        await bot.say("Hello?", user="talker")
        await rated(bot, "owner")
        assert await ratings(bot) == (2, 0)
        await bot.command("share", "off")
        assert await ratings(bot) == (0, 2)
        assert "share on" in await bot.command("status")
        await bot.command("share", "on")
        assert await ratings(bot) == (2, 0)


async def test_letting_somebody_in_says_what_becomes_of_private_chats(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await rated(bot, "owner")
        for role in ("rater", "talker", "owner"):
            said = await bot.command("people", f"grant {role} loopback:bob")
            assert "share off" in said
            assert "share on" in said
        assert "share off" in await bot.command("enable", channel="#room")
        await bot.say("Hello?", user="bob")
        assert await ratings(bot) == (1, 0)


async def test_another_owner_by_a_grant_is_asked_as_soon_as_others_talk(tmp_path: Path) -> None:
    """Whoever was let in by somebody else has agreed to nothing; among owners nobody reads along."""
    async with open_bot(tmp_path) as bot:
        await bot.command("people", "grant owner loopback:bob")
        await rated(bot, "bob")
        assert await ratings(bot) == (1, 0)
        await bot.command("share", "off", user="bob")
        assert await ratings(bot) == (0, 1)
        await bot.command("share", "on", user="bob")
        assert await ratings(bot) == (1, 0)


async def test_who_said_nothing_waits_when_others_talk(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.command("people", "grant owner loopback:bob")
        await rated(bot, "bob")
        await bot.say("Hello?", user="talker")
        assert await ratings(bot) == (0, 1)
        await bot.command("share", "on", user="bob")
        assert await ratings(bot) == (1, 0)


async def test_whose_ratings_stop_counting_is_told_so_at_once_and_once(tmp_path: Path) -> None:
    """An owner by a grant, whose ratings counted while only owners talked; not the one who set it up."""

    def told(bot: Bot) -> list[str]:
        return [one.message.channel.id for one in bot.chat.news if "do not count yet" in one.text]

    async with open_bot(tmp_path) as bot:
        await bot.command("people", "grant owner loopback:bob")
        await rated(bot, "bob")
        await rated(bot, "owner")
        await bot.app.news.look()
        assert told(bot) == []
        await bot.say("Hello?", user="talker")
        assert await ratings(bot) == (1, 1)
        await bot.app.news.look()
        await until(lambda: told(bot) == ["bob"])
        await bot.app.news.look()
        [notice] = [one for one in bot.chat.news if "do not count yet" in one.text]
        assert notice.buttons == ("run:share on",)


async def test_who_said_no_is_not_asked_again(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.command("people", "grant owner loopback:bob")
        await rated(bot, "bob")
        await bot.command("share", "off", user="bob")
        await bot.say("Hello?", user="talker")
        await bot.app.news.look()
        assert [one for one in bot.chat.news if "do not count yet" in one.text] == []


async def test_who_lets_somebody_in_hears_what_becomes_of_their_own(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        said = await bot.command("people", "grant owner loopback:bob")
        assert "What you rate in private goes on teaching me" in said
        said = await bot.command("people", "grant talker loopback:carl", user="bob")
        assert "What you rate in private waits as soon as others talk to me" in said
        await bot.command("share", "on", user="bob")
        said = await bot.command("people", "grant talker loopback:dora", user="bob")
        assert "What you rate in private goes on teaching me" in said


async def test_who_was_paired_at_the_machine_teaches_from_the_start(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.store.write(lambda db: people.grant(db, "loopback:bob", "owner", people.PAIRING, 1.0))
        await bot.app.authorization.refresh(bot.store)
        await rated(bot, "bob")
        await bot.say("Hello?", user="talker")
        assert await ratings(bot) == (1, 0)
        await bot.command("share", "off", user="bob")
        assert await ratings(bot) == (0, 1)


async def test_a_talkers_private_words_wait_for_their_own_consent(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await rated(bot, "talker")
        await bot.command("share", "on")  # the owner's, not the talker's
        assert await ratings(bot) == (0, 1)
        await bot.command("share", "on", user="talker")
        assert await ratings(bot) == (1, 0)


async def test_what_was_said_in_an_enabled_channel_may_train(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.command("enable", channel="#room")
        await rated(bot, "stranger", channel="#room")
        assert await ratings(bot) == (1, 0)


async def test_a_run_takes_none_without_consent(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        await rated(bot, "talker")
        await bot.command("share", "off")
        assert await ratings(bot) == (0, 9)
        assert "not enough" in await bot.command("train", "wait")
        await bot.command("share", "on")
        await bot.train()
        talkers = await rows(bot.store, "SELECT id FROM turns WHERE talker = 'talker'")
        claimed = await rows(bot.store, "SELECT turn FROM run_items")
        assert len(claimed) == 8
        assert not {*talkers} & {*claimed}


async def test_only_two_words_are_understood(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        for args in ("", "yes", "on off", "ON please"):
            assert "share on" in await bot.command("share", args)
        assert await rows(bot.store, "SELECT * FROM shares") == []


async def test_a_stranger_shares_nothing(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.command("share", "on", user="stranger")
        assert await rows(bot.store, "SELECT * FROM shares") == []


async def test_unrated_answers_expire_and_rated_ones_stay(tmp_path: Path) -> None:
    clock = VirtualClock(waits=True)
    async with open_bot(tmp_path, clock=clock) as bot:
        kept = await bot.say("keep this")
        await bot.react(kept, "👎")
        await bot.say("and not this")
        clock.advance(7 * 86400 - 60)
        await bot.app.maintenance.once()
        assert len(await rows(bot.store, "SELECT id FROM turns")) == 2
        clock.advance(120)
        await bot.app.maintenance.once()
        assert await rows(bot.store, "SELECT id FROM turns") == [(kept.turn,)]
        assert len(await rows(bot.store, "SELECT turn FROM messages")) == 1
        for table in ("turns", "inbox", "events", "audit"):
            assert "and not this" not in str(await rows(bot.store, f"SELECT * FROM {table}"))


async def test_what_was_trained_on_stays_known(tmp_path: Path) -> None:
    """Its undo must still find the adapters that it taints."""
    clock = VirtualClock(waits=True)
    async with open_bot(tmp_path, clock=clock) as bot:
        await bot.rated(8)
        await bot.train()
        clock.advance(30 * 86400)
        await bot.app.maintenance.once()
        assert len(await rows(bot.store, "SELECT id FROM turns")) == 8


def overheard(bot: Bot, text: str, channel: str) -> Any:
    typed = bot.chat.typed("x", user="stranger", channel=channel)
    return MessageEvent(
        event_id=typed.event_id,
        order=OrderKey(1),
        user=typed.user,
        channel=typed.channel,
        text=text,
        message_id=typed.event_id,
        addressed=False,
    )


async def test_what_is_not_said_to_the_bot_is_never_stored(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.command("enable", channel="#room")
        for channel in ("#room", "#elsewhere"):
            [receipt] = await bot.chat.host.submit([overheard(bot, "between us", channel)])
            assert receipt.outcome is Outcome.IGNORED
    content = b"".join(path.read_bytes() for path in (tmp_path / "bot").glob("goodbot.db*"))
    assert b"between us" not in content


async def test_what_was_refused_is_not_stored_either(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        assert (await bot.say("let me in", user="stranger")).turn == ""
        assert (await bot.say("hello all", user="owner", channel="#not-enabled")).turn == ""
    content = b"".join(path.read_bytes() for path in (tmp_path / "bot").glob("goodbot.db*"))
    assert b"let me in" not in content
    assert b"hello all" not in content


async def test_a_rating_that_was_taken_back_keeps_nothing(tmp_path: Path) -> None:
    clock = VirtualClock(waits=True)
    async with open_bot(tmp_path, clock=clock) as bot:
        answer = await bot.say("forget this after all")
        await bot.react(answer, "👎")
        await bot.command("undo")
        clock.advance(8 * 86400)
        await bot.app.maintenance.once()
        assert await rows(bot.store, "SELECT id FROM turns") == []
        assert await rows(bot.store, "SELECT seq FROM events") == []


async def test_talkers_are_answered_so_often_a_minute_and_raters_always(tmp_path: Path) -> None:
    clock = VirtualClock(waits=True)
    async with open_bot(tmp_path, clock=clock) as bot:
        limit = bot.app.config.serving.messages_per_minute
        said = [await bot.say(f"{n}?", user="talker") for n in range(limit + 5)]
        assert [bool(answer.turn) for answer in said] == [True] * limit + [False] * 5
        assert (await bot.say("and now?", user="owner")).turn
        clock.advance(60 / limit)
        assert (await bot.say("and now?", user="talker")).turn
        assert not (await bot.say("at once again?", user="talker")).turn
