# SPDX-License-Identifier: Apache-2.0
"""`/rl forget me`: the words are nowhere on the disk, and nothing that learnt from them answers."""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import threading
from pathlib import Path
from typing import Any

import pytest
from goodbot.access import pairing
from goodbot.api.events import ChannelKind, ChannelRef, MessageEvent, Outcome
from goodbot.base.errors import RetriableError, StoreError
from goodbot.config import Grants
from goodbot.config.lock import HomeLock
from goodbot.daemon.loopback import Answer
from goodbot.learning.training import publish as going_live
from goodbot.learning.training.publish import Publisher
from goodbot.store import exporting, forgetting, messages, retention, settings, workshop
from goodbot.testing import VirtualClock

from tests.core.builders import Bot, add_turn, check, open_bot, rows, until
from tests.core.store import killed
from tests.postgres import of_a_file
from tests.support import patience

SECRET = "my cat Moustache-7731 lives under the stairs"
_NO_NOTE = "name NOT IN ('teaching since', 'counted by')"
GRANTS = Grants(owners=("owner",), raters=("ada", "rater"), talkers=("talker",))


def on_disk(home: Path, word: str) -> list[str]:
    """The files of the state directory that have a word in them, as text or as a path."""
    found = [p for p in (home / "bot").rglob("*") if p.is_file() and word.encode() in p.read_bytes()]
    return [str(p.relative_to(home)) for p in found if not p.name.endswith(".log")]


async def forget(bot: Bot, who: str = "ada", **fields: Any) -> str:
    assert "cannot be undone" in await bot.command("forget", "me", user=who, **fields)
    said = await bot.command("forget", "me yes", user=who, **fields)
    while "still being read" in said:  # by what has just ended: maintenance wipes the disk soon
        with contextlib.suppress(StoreError):
            await bot.app.eraser.sweep()
            break
        await asyncio.sleep(0.01)
    return said


async def wipe_later(bot: Bot) -> None:
    """What maintenance does once the time between two rewritings has passed."""
    bot.app.eraser._rewritten = -math.inf
    await bot.app.eraser.sweep()


def exported_before(home: Path) -> Path:
    file = home / "bot" / exporting.EXPORTS / "20260101-000000.jsonl"
    file.parent.mkdir(exist_ok=True)
    file.write_text("what the owner exported\n")
    return file


def counted(bot: Bot, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """An entry for each time that the database is rewritten from now on."""
    times: list[str] = []
    compact = bot.store.compact

    async def counting() -> None:
        times.append("rewritten")
        await compact()

    monkeypatch.setattr(bot.store, "compact", counting)
    return times


async def tell_secrets(bot: Bot, count: int = 1, who: str = "ada") -> list[Answer]:
    said = [await bot.say(f"{SECRET} {n}", user=who) for n in range(count)]
    for number, answer in enumerate(said):
        await bot.react(answer, "👍" if number % 2 else "👎")
    return said


@of_a_file
async def test_the_words_are_nowhere_on_the_disk_afterwards(tmp_path: Path) -> None:
    async with open_bot(tmp_path, grants=GRANTS) as bot:
        await bot.command("enable", channel="#room")
        await tell_secrets(bot, 3)
        await bot.command("good", user="ada")  # its receipt quotes the answer
        await bot.command("history")
        open_answer = await bot.say(f"{SECRET} in public", user="ada", channel="#room")
        await bot.react(open_answer, "👍")
        await bot.command("share", "on", user="ada")
        assert on_disk(tmp_path, "Moustache-7731")
        said = await forget(bot)
        assert said.startswith("4 answers, 1 rating deleted.")
        assert on_disk(tmp_path, "Moustache-7731") == []
        assert on_disk(tmp_path, "loopback:ada") == []
        assert await bot.labels(open_answer) == {}
        await check(bot)
    assert on_disk(tmp_path, "Moustache-7731") == []


async def test_a_crash_before_the_disk_is_wiped_wipes_it_after_the_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_bot(tmp_path, grants=GRANTS) as bot:
        await tell_secrets(bot)

        async def dies() -> list[int]:
            raise OSError("the process died")

        with monkeypatch.context() as patch:
            patch.setattr(bot.app.eraser, "sweep", dies)
            assert "Wiping the disk waits" in await forget(bot)
    async with open_bot(tmp_path, grants=GRANTS) as bot:
        waiting = await rows(bot.store, f"SELECT name FROM switches WHERE {_NO_NOTE} ORDER BY name")
        assert waiting == [(forgetting.ERASE,), ("forget loopback:ada",)]
        await bot.app.eraser.sweep()
        assert await rows(bot.store, f"SELECT name FROM switches WHERE {_NO_NOTE}") == []
        assert on_disk(tmp_path, "Moustache-7731") == []


async def test_what_learnt_from_the_words_is_withdrawn_and_erased(tmp_path: Path) -> None:
    async with open_bot(tmp_path, grants=GRANTS) as bot:
        await bot.command("share", "on")
        await bot.command("share", "on", user="ada")
        await bot.rated(8)
        await bot.train()
        await tell_secrets(bot, 8)
        await bot.train()
        first, second = [row.directory for row in await bot.app.registry.rows()]
        said = await forget(bot)
        assert "8 answers, 0 ratings deleted. v2 was trained on them" in said
        await bot.settle()
        assert await bot.app.registry.active() == 1
        await bot.app.eraser.sweep()
        left = {entry.name for entry in bot.app.registry.root.iterdir()}
        assert left == {first}
        assert second not in left
        assert "not to be used" in await bot.command("rollback", "2")
        await check(bot)


async def test_a_forgotten_rater_takes_their_labels_along(tmp_path: Path) -> None:
    async with open_bot(tmp_path, grants=GRANTS) as bot:
        answers = [await bot.say(f"question {n}") for n in range(8)]
        for number, answer in enumerate(answers):
            await bot.react(answer, "👍" if number % 2 else "👎", user="ada")
        await bot.react(answers[0], "👍", user="rater")
        await bot.train()
        said = await forget(bot)
        assert "0 answers, 8 ratings deleted. v1 was trained on them" in said
        assert await bot.labels(answers[0]) == {"loopback:rater": 1.0}
        assert await bot.labels(answers[1]) == {}
        claimed = await rows(bot.store, "SELECT labels FROM run_items")
        assert all("ada" not in labels for (labels,) in claimed)
        await bot.settle()
        assert await bot.app.registry.active() == 0
        await check(bot)


async def test_an_adapter_that_learnt_from_anothers_prompt_with_their_words_is_marked(tmp_path: Path) -> None:
    """In a shared channel their words were context of what others asked."""
    async with open_bot(tmp_path, grants=GRANTS, history=4, held_out=1, min_ratings=2) as bot:
        await bot.command("enable", channel="#room")
        await bot.say(SECRET, user="ada", channel="#room")
        later = [await bot.say(f"and {n}?", channel="#room") for n in range(2)]
        for answer in later:
            await bot.react(answer, "👍")
        stored = await rows(bot.store, "SELECT context FROM turns ORDER BY seq")
        assert [who for _, who in json.loads(stored[2][0])] == ["loopback:ada", "loopback:owner"]
        await bot.train()
        assert "1 answer, 0 ratings deleted. v1 was trained on them" in await forget(bot)
        assert on_disk(tmp_path, "Moustache-7731") == []
        kept = await rows(bot.store, "SELECT id, messages, context, tokens FROM turns ORDER BY seq")
        assert [row[0] for row in kept] == [answer.turn for answer in later]
        assert [m["content"] for m in json.loads(kept[1][1])] == ["and 0?", "v0 says: and 0?", "and 1?"]
        assert json.loads(kept[1][2]) == [[later[0].turn, "loopback:owner"]]
        assert [row[3] for row in kept] == [b"", b""]
        await bot.settle()
        verdict = await bot.last_run()
        assert (verdict.state, await bot.app.registry.active()) in (("activated", 2), ("released", 0))
        await check(bot)


async def test_words_that_outlived_their_own_turn_in_a_rated_prompt_are_found(tmp_path: Path) -> None:
    """An unrated turn expires; inside the prompt of a rated one its words may stay, until this."""
    clock = VirtualClock(waits=True)
    async with open_bot(tmp_path, grants=GRANTS, history=4, clock=clock) as bot:
        await bot.command("enable", channel="#room")
        await bot.say(SECRET, user="ada", channel="#room")
        answer = await bot.say("what about it?", channel="#room")
        await bot.react(answer, "👍")
        clock.advance(8 * 86400)
        await bot.app.maintenance.once()
        assert await rows(bot.store, "SELECT id FROM turns") == [(answer.turn,)]
        [(messages,)] = await rows(bot.store, "SELECT messages FROM turns")
        assert SECRET in messages
        await forget(bot)
        assert on_disk(tmp_path, "Moustache-7731") == []
        assert await bot.labels(answer) == {"loopback:owner": 1.0}


async def test_an_answer_to_somebody_else_that_quotes_them_goes_too(tmp_path: Path) -> None:
    async with open_bot(tmp_path, grants=GRANTS, history=4) as bot:
        await bot.command("enable", channel="#room")
        await bot.say(SECRET, user="ada", channel="#room")
        quoting = await bot.say(f"she said: {SECRET}", channel="#room")  # the fake model echoes
        await bot.react(quoting, "👍")
        other = await bot.say("thanks", channel="#room")
        said = await forget(bot)
        assert "1 answer to others quoted them and went too." in said
        assert await rows(bot.store, "SELECT id FROM turns") == [(other.turn,)]
        assert on_disk(tmp_path, "Moustache-7731") == []


async def test_a_question_under_way_is_forgotten_with_the_rest(tmp_path: Path) -> None:
    async with open_bot(tmp_path, grants=GRANTS) as bot:
        bot.fake.set(generate="held")
        typed = bot.chat.typed("x", user="ada")
        event = MessageEvent(
            event_id="q",
            order=typed.order,
            user=typed.user,
            channel=typed.channel,
            text=SECRET,
            message_id="q",
            addressed=True,
        )
        [receipt] = await bot.chat.host.submit([event])
        assert receipt.outcome is Outcome.ACCEPTED
        await forget(bot)
        bot.fake.set(generate="ok")
        await until(lambda: bot.chat.replies)
        assert "data was deleted while I answered" in bot.chat.replies[-1].text
        assert await rows(bot.store, "SELECT id FROM turns") == []
        assert on_disk(tmp_path, "Moustache-7731") == []


async def test_a_training_under_way_on_them_is_ended(tmp_path: Path) -> None:
    async with open_bot(tmp_path, grants=GRANTS) as bot:
        await bot.command("share", "on")
        await bot.command("share", "on", user="ada")
        await tell_secrets(bot, 8)
        await bot.start_training()
        await forget(bot)
        await until(lambda: not bot.app.scheduler.training)
        assert (await bot.last_run()).state == "released"
        assert await bot.app.registry.active() == 0
        assert list(bot.app.registry.root.iterdir()) == []
        assert not list((tmp_path / "bot" / "staging").iterdir())
        await check(bot)


async def test_it_takes_two_words_by_the_same_person_at_the_same_place_within_a_minute(
    tmp_path: Path,
) -> None:
    clock = VirtualClock(waits=True)
    async with open_bot(tmp_path, grants=GRANTS, clock=clock) as bot:
        await bot.command("enable", channel="#room")
        answer = await bot.say(SECRET, user="ada")

        async def stays(*args: str, **fields: Any) -> None:
            await bot.command("forget", *args, **fields)
            assert len(await rows(bot.store, "SELECT id FROM turns")) == 1

        await stays("me yes", user="ada")  # it only asks
        clock.advance(61)
        await stays("me yes", user="ada")  # too late: asks again
        await stays("me yes", user="ada", channel="#room")  # elsewhere
        await stays("me yes", user="talker")
        for odd in ("", "yes", "you yes", "me yes please", "loopback:talker yes"):
            await stays(odd, user="ada")
        clock.advance(61)
        assert "deleted" in await forget(bot)
        assert await rows(bot.store, "SELECT id FROM turns") == []
        assert answer.turn


async def test_owners_forget_others_and_nobody_else_does(tmp_path: Path) -> None:
    async with open_bot(tmp_path, grants=GRANTS) as bot:
        await tell_secrets(bot)
        for _ in range(2):
            said = await bot.command("forget", "loopback:ada yes", user="rater")
            assert "only an owner" in said
        assert len(await rows(bot.store, "SELECT id FROM turns")) == 1
        await bot.command("forget", "loopback:ada")
        assert "1 answer" in await bot.command("forget", "loopback:ada yes")
        assert on_disk(tmp_path, "Moustache-7731") == []


async def test_the_trail_keeps_its_chain_and_forgets_who_it_speaks_of(tmp_path: Path) -> None:
    async with open_bot(tmp_path, grants=GRANTS) as bot:
        await bot.command("pause", user="ada")
        await bot.command("people", "grant rater loopback:ada")
        before, _ = await bot.store.read(settings.audit)
        await forget(bot)
        entries, whole = await bot.store.read(settings.audit)
        assert whole
        assert entries[: len(before)] == before
        assert entries[-1].action == "forget"
        assert entries[-1].actor == before[0].actor  # one alias, and nobody knows whose
        assert '"answers":0' in entries[-1].detail
        assert await rows(bot.store, "SELECT * FROM aliases") == []
        assert on_disk(tmp_path, "loopback:ada") == []


async def test_all_linked_accounts_are_forgotten_together(tmp_path: Path) -> None:
    async with open_bot(tmp_path, grants=GRANTS) as bot:
        code = (await bot.command("link", user="ada")).split()[0]
        assert "one person" in await bot.command("link", code, user="talker")
        await tell_secrets(bot)
        await tell_secrets(bot, who="talker")
        assert "of all 2 linked accounts" in await bot.command("forget", "me", user="talker")
        assert "2 answers" in await bot.command("forget", "me yes", user="talker")
        assert on_disk(tmp_path, "Moustache-7731") == []
        assert await rows(bot.store, "SELECT * FROM links") == []


async def test_a_grant_by_command_goes_too_but_not_the_last_owners(tmp_path: Path) -> None:
    async with open_bot(tmp_path, grants=Grants(talkers=("x",))) as bot:
        code = await pairing.open_code(bot.store, "loopback", bot.app.clock.now())
        await bot.say(code, user="ada")
        await bot.command("people", "grant rater loopback:grace", user="ada")
        await forget(bot, "grace")
        assert await rows(bot.store, "SELECT person FROM grants") == [("loopback:ada",)]
        assert "no other owner" in await forget(bot, "ada")
        await bot.command("people", "grant owner loopback:grace", user="ada")
        assert "no other owner" not in await forget(bot, "ada")
        assert await rows(bot.store, "SELECT person FROM grants") == [("loopback:grace",)]


async def test_others_keep_what_is_theirs(tmp_path: Path) -> None:
    async with open_bot(tmp_path, grants=GRANTS) as bot:
        mine = await bot.say("a question of mine")
        await bot.react(mine, "👍")
        await bot.react(mine, "👎", user="rater")
        await bot.command("share", "on")
        await tell_secrets(bot)
        await forget(bot)
        assert await bot.labels(mine) == {"loopback:owner": 1.0, "loopback:rater": -1.0}
        assert await rows(bot.store, "SELECT person FROM shares") == [("loopback:owner",)]
        stored = await rows(bot.store, "SELECT id, tokens FROM turns")
        assert [row[0] for row in stored] == [mine.turn]
        await check(bot)


async def test_an_answer_under_way_to_somebody_else_keeps_nothing_of_them(tmp_path: Path) -> None:
    """Their words were in its prompt when it began, and are forgotten when it ends."""
    async with open_bot(tmp_path, grants=GRANTS, history=4) as bot:
        await bot.command("enable", channel="#room")
        await bot.say(SECRET, user="ada", channel="#room")
        bot.fake.set(generate="held")
        typed = bot.chat.typed("x", channel="#room")
        event = MessageEvent(
            event_id="q",
            order=typed.order,
            user=typed.user,
            channel=typed.channel,
            text="and?",
            message_id="q",
            addressed=True,
        )
        await bot.chat.host.submit([event])
        await until(lambda: bot.app.server._writing)
        await forget(bot)
        bot.fake.set(generate="ok")
        await until(lambda: len(bot.chat.replies) == 2)
        [(messages, tokens, trainable)] = await rows(
            bot.store, "SELECT messages, tokens, trainable FROM turns"
        )
        assert [m["content"] for m in json.loads(messages)] == ["and?"]
        assert (tokens, trainable) == (b"", 0)
        assert on_disk(tmp_path, "Moustache-7731") == []


async def test_prompts_from_before_it_was_recorded_whose_words_they_hold_lose_their_history(
    tmp_path: Path,
) -> None:
    async with open_bot(tmp_path, grants=GRANTS) as bot:
        room = ChannelRef(connector="loopback", account="loopback", id="#room", kind=ChannelKind.SHARED)
        history = [
            {"role": "system", "content": "Be kind."},
            {"role": "user", "content": SECRET},
            {"role": "assistant", "content": "I see."},
            {"role": "user", "content": "and?"},
        ]
        await add_turn(bot.store, "old", channel=room, messages=history)
        await add_turn(bot.store, "private", messages=history[:1] + history[-1:])
        await tell_secrets(bot)
        await forget(bot)
        kept = dict(await rows(bot.store, "SELECT id, messages FROM turns"))
        assert [m["content"] for m in json.loads(kept["old"])] == ["Be kind.", "and?"]
        assert [m["content"] for m in json.loads(kept["private"])] == ["Be kind.", "and?"]
        assert on_disk(tmp_path, "Moustache-7731") == []


async def test_a_version_that_was_withdrawn_before_is_erased_as_well(tmp_path: Path) -> None:
    async with open_bot(tmp_path, grants=GRANTS) as bot:
        await bot.command("share", "on")
        await bot.command("share", "on", user="ada")
        said = await tell_secrets(bot, 8)
        await bot.train()
        await bot.rollback("base")
        trained = await bot.trained(1)
        number = next(n for n, answer in enumerate(said) if answer.turn in trained)
        await bot.unreact(said[number], "👍" if number % 2 else "👎")
        [row] = await bot.app.registry.rows()
        assert row.tainted == "kept_changed"
        assert len(list(bot.app.registry.root.iterdir())) == 1
        await forget(bot)
        assert list(bot.app.registry.root.iterdir()) == []
        await check(bot)


async def test_what_another_base_model_had_learnt_is_erased_too(tmp_path: Path) -> None:
    """Nobody looks after its pointer while this model answers."""
    async with open_bot(tmp_path, grants=GRANTS) as bot:
        await bot.command("share", "on")
        await bot.command("share", "on", user="ada")
        await bot.rated(8)
        await bot.train()
        await tell_secrets(bot, 8)
        await bot.train()
        await bot.rollback("base")

        async def elsewhere(db: Any) -> None:
            await db.execute("UPDATE adapters SET model = 'other'")
            await db.execute("UPDATE pointers SET model = 'other', version = 2")

        await bot.store.write(elsewhere)
        await forget(bot)
        assert await rows(bot.store, "SELECT version FROM pointers WHERE model = 'other'") == [(1,)]
        erased = await rows(bot.store, "SELECT version FROM adapters WHERE erased_at IS NOT NULL")
        assert erased == [(2,)]


async def test_the_copies_of_before_a_change_of_the_schema_go_too(tmp_path: Path) -> None:
    async with open_bot(tmp_path, grants=GRANTS) as bot:
        copy = tmp_path / "bot" / "goodbot.db.schema-1.bak"
        copy.write_bytes(SECRET.encode())
        await tell_secrets(bot)
        await forget(bot)
        assert not copy.exists()


@pytest.mark.parametrize("undone", ["revoked", "off"])
async def test_who_may_talk_no_more_can_still_be_forgotten(tmp_path: Path, undone: str) -> None:
    async with open_bot(tmp_path) as bot:
        if undone == "revoked":
            await bot.command("people", "grant talker loopback:ada")
            await bot.say(SECRET, user="ada")
            await bot.command("people", "revoke loopback:ada")
            place = ""
        else:
            await bot.command("enable", channel="#room")
            await bot.say(SECRET, user="ada", channel="#room")
            await bot.command("disable", channel="#room")
            place = "#room"
        assert "1 answer, 0 ratings deleted" in await forget(bot, channel=place)
        assert on_disk(tmp_path, "Moustache-7731") == []
        assert "deletes" not in await bot.command("forget", "me", user="ada", channel=place)
        assert "deletes" not in await bot.command("forget", "me", user="stranger")


async def test_nobody_loses_a_grant_by_an_account_that_may_less(tmp_path: Path) -> None:
    """Who talks an owner into a link can end what is stored, not who owns the bot."""
    async with open_bot(tmp_path, grants=GRANTS) as bot:
        await bot.command("people", "grant owner loopback:grace")
        code = (await bot.command("link", user="talker")).split()[0]
        assert "loopback:talker and this account" in await bot.command("link", code, user="grace")
        said = await forget(bot, "talker")
        assert "The grant of loopback:grace stays" in said
        assert await rows(bot.store, "SELECT person FROM grants") == [("loopback:grace",)]


async def test_what_somebody_was_told_does_not_remember_them(tmp_path: Path) -> None:
    async with open_bot(tmp_path, grants=GRANTS) as bot:
        for number in range(9):
            answer = await bot.say(f"question {number}")
            await bot.react(answer, "👎", user="ada")
        assert await rows(bot.store, "SELECT 1 FROM told WHERE person LIKE 'streak %ada %'")
        await forget(bot)
        assert await rows(bot.store, "SELECT person FROM told WHERE person LIKE '%ada%'") == []


async def test_an_adapter_that_is_recorded_and_not_live_when_its_judge_is_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only held-out answers are theirs: it has not learnt them, but its run is ended."""
    async with open_bot(tmp_path, grants=GRANTS) as bot:
        await bot.command("share", "on")
        answers = await bot.rated(8)
        real = Publisher._activate

        async def activate(trainer: Publisher, *args: Any) -> Any:
            held = await rows(bot.store, "SELECT turn FROM run_items WHERE split = 'held_out'")

            async def theirs(db: Any) -> None:
                await db.execute("UPDATE turns SET talker = 'ada' WHERE id = ?", held[0])

            await bot.store.write(theirs)
            await bot.store.write(
                lambda db: forgetting.forget(
                    db, "default", bot.app.model.name, "loopback:ada", keep_grants=()
                )
            )
            return await real(trainer, *args)

        with monkeypatch.context() as patch:
            patch.setattr(Publisher, "_activate", activate)
            assert (await bot.train()).state != "activated"
        assert answers
        assert "not to be used" in await bot.command("rollback", "1")
        await bot.app.eraser.sweep()
        await check(bot)


async def test_an_answer_under_way_that_repeats_them_is_dropped(tmp_path: Path) -> None:
    async with open_bot(tmp_path, grants=GRANTS, history=4) as bot:
        await bot.command("enable", channel="#room")
        await bot.say(SECRET, user="ada", channel="#room")
        bot.fake.set(generate="held")
        typed = bot.chat.typed("x", channel="#room")
        event = MessageEvent(
            event_id="q",
            order=typed.order,
            user=typed.user,
            channel=typed.channel,
            text=f"she said: {SECRET}",
            message_id="q",
            addressed=True,
        )
        await bot.chat.host.submit([event])
        await until(lambda: bot.app.server._writing)  # its prompt is made
        await forget(bot)
        bot.fake.set(generate="ok")
        await until(lambda: len(bot.chat.replies) == 2)
        assert "data was deleted while I answered" in bot.chat.replies[-1].text
        await until(lambda: not bot.app.follow_up_tasks.answering)
        assert await rows(bot.store, "SELECT id FROM turns") == []
        await wipe_later(bot)
        assert on_disk(tmp_path, "Moustache-7731") == []


async def test_a_connector_is_nobody(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        code = await pairing.open_code(bot.store, "loopback", bot.app.clock.now())
        for word in ("loopback", "loopback:"):
            assert "CONNECTOR:ID" in await bot.command("forget", word)
            assert "CONNECTOR:ID" in await bot.command("forget", f"{word} yes")
        assert "my owner now" in (await bot.say(code, user="ada")).text


async def test_the_connector_is_told_until_it_has_forgotten_them_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_bot(tmp_path, grants=GRANTS) as bot:
        await tell_secrets(bot)
        asked: list[str] = []

        async def down(user: str) -> None:
            asked.append(user)
            raise RetriableError("the platform is down")

        monkeypatch.setattr(bot.chat, "forget", down)
        await forget(bot)
        await bot.app.eraser.sweep()
        assert asked == ["ada", "ada"]
        assert await bot.store.read(forgetting.to_tell) == ["loopback:ada"]
    async with open_bot(tmp_path, grants=GRANTS) as bot:
        told: list[str] = []

        async def done(user: str) -> None:
            told.append(user)

        monkeypatch.setattr(bot.chat, "forget", done)
        await bot.app.eraser.sweep()
        await bot.app.eraser.sweep()
        assert told == ["ada"]
        assert on_disk(tmp_path, "loopback:ada") == []


async def test_who_is_forgotten_while_the_disk_is_wiped_is_wiped_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_bot(tmp_path, grants=GRANTS) as bot:
        await bot.store.write(forgetting.erase)
        compact = bot.store.compact

        async def meanwhile() -> None:
            await compact()
            await bot.store.write(forgetting.erase)

        with monkeypatch.context() as patch:
            patch.setattr(bot.store, "compact", meanwhile)
            await bot.app.eraser.sweep()
        assert await bot.store.read(lambda db: settings.switch(db, forgetting.ERASE))
        await wipe_later(bot)
        assert not await bot.store.read(lambda db: settings.switch(db, forgetting.ERASE))


async def test_s7_who_has_nothing_here_deletes_nothing_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_bot(tmp_path, grants=GRANTS) as bot:
        liked = await bot.say("What is a walrus?", user="ada")
        await bot.command("good", user="ada")
        receipts = "SELECT count(*) FROM inbox WHERE coalesce(json_extract(receipt, '$.x'), '') <> ''"
        before = (await rows(bot.store, receipts))[0][0]
        file, times = exported_before(tmp_path), counted(bot, monkeypatch)
        for _ in range(3):
            assert "0 answers, 0 ratings deleted" in (said := await forget(bot, "talker"))
            assert "exported" not in said
        assert not await bot.store.read(lambda db: settings.switch(db, forgetting.ERASE))
        assert (times, file.exists()) == ([], True)
        assert (await rows(bot.store, receipts))[0][0] >= before > 0
        assert await bot.labels(liked)
        await check(bot)


async def test_s7_all_who_ask_share_one_rewriting_in_ten_minutes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_bot(tmp_path, grants=GRANTS) as bot:
        times = counted(bot, monkeypatch)
        for who in ("talker", "ada", "talker"):
            await tell_secrets(bot, who=who)
            file = exported_before(tmp_path)
            assert "1 answer" in await forget(bot, who)
            assert not file.exists(), "what was exported does not wait"
        since = exported_before(tmp_path)
        await bot.app.eraser.sweep()
        assert (times, since.exists()) == (["rewritten"], True)
        assert await bot.store.read(lambda db: settings.switch(db, forgetting.ERASE))
        await wipe_later(bot)
        assert times == ["rewritten"] * 2
        assert on_disk(tmp_path, "Moustache-7731") == []
        await tell_secrets(bot)
        await forget(bot)
    async with open_bot(tmp_path, grants=GRANTS) as bot:  # a restart has not forgotten that it waits
        times = counted(bot, monkeypatch)
        assert await bot.store.read(lambda db: settings.switch(db, forgetting.ERASE))
        await bot.app.eraser.sweep()
        assert times == ["rewritten"]
        assert not await bot.store.read(lambda db: settings.switch(db, forgetting.ERASE))
        assert on_disk(tmp_path, "Moustache-7731") == []


@of_a_file
async def test_s6_what_a_killed_backup_has_left_goes_too(tmp_path: Path) -> None:
    async with open_bot(tmp_path, grants=GRANTS) as bot:
        (disk := tmp_path / "disk").mkdir()
        (other := tmp_path / "bot" / "backups" / "tmpother").mkdir(parents=True)
        (other / "place").symlink_to(disk)  # not what it would be named
        await tell_secrets(bot)
        await bot.settle()
        left = await asyncio.to_thread(killed.backup, tmp_path / "bot", disk / "b.tar")
        assert SECRET.encode() in (left / "goodbot.db").read_bytes()
        with workshop.made(tmp_path / "bot", disk) as under_way:
            assert not left.exists(), "the next backup deletes it"
            left = await asyncio.to_thread(killed.backup, tmp_path / "bot", disk / "b.tar")
            await forget(bot)
            assert [*disk.iterdir()] == [under_way]
        assert [*disk.iterdir()] == []


COPIES = ("bot.before-restore-20261121-101500", "bot.restored", "bot.restoring-1")


async def test_s6_what_a_restore_has_replaced_goes_with_it(tmp_path: Path) -> None:
    async with open_bot(tmp_path, grants=GRANTS) as bot:
        for name in COPIES:
            (tmp_path / name).mkdir()
            (tmp_path / name / "goodbot.log").write_text(SECRET)
        (tmp_path / "bot.before-restore-of-mine").write_text("a file of somebody else's")
        half = tmp_path / "bot" / "goodbot.db.schema-1.bak.partial"
        half.write_text(SECRET)
        await tell_secrets(bot, 2)
        said = await forget(bot)
        assert "what a restore has replaced: ask an owner to delete them." in said
        assert str(tmp_path) not in said
        assert not half.exists(), "half a copy that a killed upgrade has left"
        assert all((tmp_path / name).exists() for name in COPIES), "those are an owner's to delete"
        await bot.say(SECRET, user="ada")
        asked = await bot.command("forget", "loopback:ada")
        assert all(str(tmp_path / name) in asked for name in COPIES)
        assert all((tmp_path / name).exists() for name in COPIES), "nobody has agreed yet"
        under_way = HomeLock(tmp_path / "bot.restoring-1")
        under_way.acquire()
        said = await bot.command("forget", "loopback:ada yes")
        under_way.release()
        assert all(str(tmp_path / name) in said for name in COPIES[:2])
        assert [name for name in COPIES if (tmp_path / name).exists()] == ["bot.restoring-1"]
        assert (tmp_path / "bot.before-restore-of-mine").exists()
        assert "Backups that were made before still hold it" in said


async def test_s6_what_cannot_be_deleted_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_bot(tmp_path, grants=GRANTS) as bot:
        (tmp_path / COPIES[0]).mkdir()
        await bot.say(SECRET, user="ada")

        def refuse(path: Path) -> None:
            raise PermissionError(13, "Permission denied", str(path))

        monkeypatch.setattr("goodbot.learning.adapters.erasure.trees.remove", refuse)
        await bot.command("forget", "loopback:ada")
        said = await bot.command("forget", "loopback:ada yes")
        assert f"{tmp_path / COPIES[0]} holds it, too, and cannot be deleted: Permission denied." in said


async def test_s6_files_of_a_version_that_is_being_published_go_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Forgotten between the files and their row, nobody knew of them until the next start."""
    there, go_on = threading.Event(), threading.Event()

    def slowly(*of: Any) -> Any:
        made = publishing(*of)
        there.set()
        go_on.wait(patience(60))
        return made

    publishing = going_live.publish
    monkeypatch.setattr(going_live, "publish", slowly)
    async with open_bot(tmp_path, grants=GRANTS, held_out=0) as bot:
        await bot.command("share", "on", user="ada")
        await bot.react(await bot.say("Hello?", user="ada"), "👍")
        await bot.rated(8)
        await bot.start_training()
        bot.fake.set(train="ok")
        bot.fake.go()
        await until(there.is_set)
        assert "cannot be undone" in await bot.command("forget", "me", user="ada")
        forgetting_them = asyncio.create_task(bot.command("forget", "me yes", user="ada"))
        await until(lambda: bot.app.scheduler._stops)
        go_on.set()
        await forgetting_them
        await bot.settle()
        known = {row.directory for row in await bot.app.registry.rows()}
        left = {path.name for path in bot.app.registry.root.iterdir() if path.is_dir()}
        assert left <= known


async def test_p13_a_stranger_who_has_asked_to_join_is_forgotten_at_no_cost_to_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_bot(tmp_path, grants=GRANTS) as bot:
        file, times, cards = exported_before(tmp_path), counted(bot, monkeypatch), list[str]()
        tell = bot.app.join_requests._tell

        async def telling(notice: Any, still: Any) -> None:
            cards.append(notice.person)
            await tell(notice, still)

        monkeypatch.setattr(bot.app.join_requests, "_tell", telling)
        for _ in range(2):
            assert "private" in (await bot.say("hello", user="mallory77")).text
            assert await rows(bot.store, "SELECT 1 FROM join_requests WHERE person = 'loopback:mallory77'")
            assert "request to talk to me is deleted" in await forget(bot, "mallory77")
            for table in ("join_requests", "told", "inbox", "switches"):
                kept = await rows(bot.store, f"SELECT * FROM {table}")
                assert not [row for row in kept if "mallory" in str(row)]
        await until(lambda: cards)
        assert cards == ["loopback:owner"], "it takes no card from other strangers"
        assert not await bot.store.read(lambda db: settings.switch(db, forgetting.ERASE))
        assert (times, file.exists()) == ([], True)
        await bot.say("hello", user="mallory77")
        asked = [await bot.command("forget", "me", user="mallory77") for _ in range(4)]
        assert [bool(told) for told in asked] == [True, False, False, False], (
            "who asks all day costs no space"
        )


async def test_p13_who_was_refused_is_not_asked_about_again(tmp_path: Path) -> None:
    async with open_bot(tmp_path, grants=GRANTS) as bot:
        await bot.say("hello", user="mallory77")
        await bot.command("people", "refuse loopback:mallory77")
        assert "deleted" not in await bot.command("forget", "me", user="mallory77")
        assert (await bot.say("hello", user="mallory77")).text == ""


async def test_s6_of_an_answer_that_was_sent_again_its_question_goes_with_it(tmp_path: Path) -> None:
    """With who asked, and when it is too old."""
    async with open_bot(tmp_path, grants=GRANTS) as bot:
        mine, other = await bot.say("Hello?", user="ada"), await bot.say("And you?")
        for answer in (other, mine):
            known = ("SELECT 1 FROM turns WHERE id = ?", (answer.turn,))
            await until(lambda known=known: rows(bot.store, *known))
            await bot.store.write(lambda db, t=answer.turn: messages.sending_again(db, t, f"asked {t}"))

        async def kept() -> list[bool]:
            said = await bot.store.read(lambda db: settings.switch(db, "sent again"))
            return [f"asked {answer.turn}" in said for answer in (mine, other)]

        assert await kept() == [True, True]
        await forget(bot)
        assert await kept() == [False, True]
        await retention.expire(bot.store, bot.app.clock.now() + 86400.0, unrated_days=0.5)
        assert await kept() == [False, False]
        assert not await bot.store.read(lambda db: settings.switch(db, "sent again"))
