# SPDX-License-Identifier: Apache-2.0
"""Adapters of people, channels and teams beside the shared one: what teaches them, whom they answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from goodbot.api.events import ChannelKind, ChannelRef, UserRef
from goodbot.config import ServingConfig
from goodbot.daemon.loopback import Answer
from goodbot.learning import scopes as routing
from goodbot.learning.adapters.formats import Formats
from goodbot.store import adapters, people, scopes, training_pool
from goodbot.store.pools import SHARED

from tests.core.builders import CHANNEL, GRANTS, Bot, check_store, open_bot, rows, until
from tests.core.learning.evaluation.asking import letter, questions

ADA, BOB = "rater", "second"
PEOPLE = replace(GRANTS, raters=(ADA, BOB))
HER = f"person loopback:{ADA}"


def opened(home: Path, scopes: str = "person", **training: Any) -> AbstractAsyncContextManager[Bot]:
    given: dict[str, Any] = {"schedule": "auto", "max_load": 1.0, "max_gpu": 1.0, "on_battery": True}
    return open_bot(home, grants=PEOPLE, scopes=scopes, **{**given, **training})


async def rated(bot: Bot, who: str, count: int = 8, channel: str = "") -> list[Answer]:
    made: list[Answer] = []
    for number in range(count):
        answer = await bot.say(f"{who} asks {number}", user=who, channel=channel)
        await bot.react(answer, "👍" if number % 2 == 0 else "👎", user=who)
        made.append(answer)
    return made


async def trains(bot: Bot) -> bool:
    """Let what is due beside the shared one train; whether there was anything."""
    begun = await bot.app.scopes.look(bot.app.scheduler)
    await until(lambda: not bot.app.scheduler.training)
    return begun


async def version(bot: Bot, who: str, channel: str = "") -> int:
    """Which answers that person now."""
    answer = await bot.say("And now?", user=who, channel=channel)
    [(found,)] = await rows(bot.store, "SELECT version FROM turns WHERE id = ?", (answer.turn,))
    return found


async def test_who_rates_enough_is_answered_by_an_adapter_of_their_own(tmp_path: Path) -> None:
    async with opened(tmp_path) as bot:
        await rated(bot, ADA, 7)
        assert not await trains(bot), "one is missing"
        await rated(bot, ADA, 1)
        assert await trains(bot)
        assert await rows(bot.store, "SELECT scope, state FROM runs") == [(HER, "activated")]
        assert await version(bot, ADA) == 1
        assert await version(bot, BOB) == await version(bot, "owner") == 0
        assert await bot.app.server.served() == await bot.app.registry.active() == 0
        assert not await trains(bot), "they are used up"
        await rated(bot, ADA, 2)
        assert "v1" not in await bot.command("status"), "it is no version of everybody's"
        await check_store(bot.store)


async def test_what_taught_the_own_adapter_teaches_the_shared_one_with_consent(tmp_path: Path) -> None:
    async with opened(tmp_path) as bot:
        await bot.command("pause")
        await rated(bot, ADA)
        pool = bot.app.pool
        assert await bot.store.read(lambda db: training_pool.available(db, pool, 100)) == 0
        assert not await trains(bot), "pause holds for all"
        await bot.command("resume")
        assert await trains(bot)
        her = bot.app.scopes.pool(HER)
        left = await bot.store.read(lambda db: training_pool.available(db, her, 100))
        assert left == 2, "those that were held out"
        await bot.command("pause")
        await bot.command("share", "on", user=ADA)
        assert await bot.store.read(lambda db: training_pool.available(db, pool, 100)) == 8


async def test_it_continues_the_shared_one_and_goes_when_that_is_withdrawn(tmp_path: Path) -> None:
    async with opened(tmp_path) as bot:
        await rated(bot, "owner")
        await until(bot.app.registry.active)
        await bot.settle()
        assert await trains(bot), "the owner's own"
        await rated(bot, ADA)
        assert await trains(bot)
        row = await bot.app.scopes.registry(HER).row(3)
        assert (row.parent, row.scope) == (1, HER)
        assert [await version(bot, who) for who in ("owner", ADA, BOB)] == [2, 3, 1]
        await bot.command("pause")
        first = next(iter(await bot.trained_by(1)))
        await bot.command("undo", first)
        assert await bot.store.read(lambda db: adapters.tainted(db, 3))

        async def withdrawn() -> bool:
            return await bot.app.registry.active() == 0

        await until(withdrawn)
        assert await version(bot, ADA) == await version(bot, BOB)


async def test_a_rating_that_is_taken_back_ends_what_it_taught(tmp_path: Path) -> None:
    async with opened(tmp_path) as bot:
        answers = await rated(bot, ADA)
        assert await trains(bot)
        items = "SELECT turn FROM run_items WHERE split = 'train'"
        trained = {turn for (turn,) in await rows(bot.store, items)}
        number, answer = next((n, one) for n, one in enumerate(answers) if one.turn in trained)
        await bot.unreact(answer, "👍" if number % 2 == 0 else "👎", user=ADA)
        assert await version(bot, ADA) == 0
        await rated(bot, ADA, 1)
        assert await trains(bot), "the others are free again"
        assert await version(bot, ADA) == 2


async def test_forgetting_somebody_deletes_their_adapter_at_once(tmp_path: Path) -> None:
    async with opened(tmp_path) as bot:
        await rated(bot, ADA)
        await rated(bot, BOB)
        assert await trains(bot)
        assert await trains(bot)
        hers, theirs = await version(bot, ADA), await version(bot, BOB)
        assert 0 != hers != theirs != 0
        gone = await bot.app.scopes.registry(HER).path(hers)
        server: Any = bot.app.server
        assert {hers, theirs} <= server._loaded.keys()
        await bot.command("forget", "me", user=ADA)
        await bot.command("forget", "me yes", user=ADA)
        assert hers not in bot.app.scopes._loaded
        await until(lambda: hers not in server._loaded)
        assert await rows(bot.store, "SELECT version FROM pointers WHERE version > 0") == [(theirs,)]
        await bot.app.eraser.sweep()
        assert not gone.exists()
        assert await version(bot, BOB) == theirs
        for table in ("runs", "adapters", "pointers", "comparisons", "canaries", "switches", "turns"):
            assert HER not in repr(await rows(bot.store, f"SELECT * FROM {table}")), table
        await check_store(bot.store)


async def test_without_the_setting_nothing_is_anybodys_own(tmp_path: Path) -> None:
    async with opened(tmp_path, "shared") as bot:
        await rated(bot, ADA)
        assert not await trains(bot)
        assert await rows(bot.store, "SELECT DISTINCT own FROM turns") == [(None,)]
        assert await rows(bot.store, "SELECT count(*) FROM runs") == [(0,)]


async def test_a_channel_has_one_for_all_who_talk_there(tmp_path: Path) -> None:
    async with opened(tmp_path, "channel") as bot:
        await bot.command("enable", channel="#den")
        await bot.command("pause")
        await rated(bot, ADA, 4, "#den")
        await rated(bot, BOB, 4, "#den")
        [(key,)] = await rows(bot.store, "SELECT DISTINCT own FROM turns")
        assert key.startswith("channel ")
        trainer = await bot.app.scopes.next()
        assert trainer is not None
        assert (await trainer.run(())).state == "activated"
        assert await version(bot, ADA, "#den") == await version(bot, BOB, "#den") == 1
        assert await version(bot, ADA) == 0, "in private it is another one"


async def test_few_are_loaded_at_once_and_all_are_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routing, "_EMBEDDED", 1)
    async with opened(tmp_path) as bot:
        for who in (ADA, BOB):
            await rated(bot, who)
            assert await trains(bot)
        assert [await version(bot, who) for who in (ADA, BOB, ADA)] == [1, 2, 1]
        assert len(bot.app.scopes._loaded) == 1


async def test_where_it_cannot_be_loaded_the_shared_one_answers(tmp_path: Path) -> None:
    async with opened(tmp_path) as bot:
        await rated(bot, ADA)
        assert await trains(bot)
        assert await version(bot, ADA) == 1
        bot.app.scopes._loaded.clear()
        await bot.app.server.unload(1)
        bot.fake.set(refused=[1])
        assert await version(bot, ADA) == 0
        bot.fake.set(refused=[])
        assert await version(bot, ADA) == 1


async def test_linked_accounts_are_one_person(tmp_path: Path) -> None:
    async with opened(tmp_path) as bot:
        await bot.command("pause")
        for who in (ADA, BOB):
            await rated(bot, who, 1)
        one, other = (f"loopback:{who}" for who in (ADA, BOB))

        async def owns(db: Any) -> list[str]:
            await scopes.regroup(db, [one, other])
            found = await db.execute_fetchall("SELECT DISTINCT own FROM turns ORDER BY own")
            return [own for (own,) in found]

        await bot.store.write(lambda db: people.link(db, one, other, 1.0))
        [together] = await bot.store.write(owns)
        await bot.store.write(lambda db: people.unlink(db, other, 2.0, owners=()))
        apart = await bot.store.write(owns)
        assert together in apart
        assert apart == [HER, f"person {other}"]


@pytest.mark.parametrize(
    ("kind", "place", "expected"),
    [
        ("shared", CHANNEL, ""),
        ("person", CHANNEL, HER),
        ("channel", CHANNEL, 'channel ["loopback","loopback","owner"]'),
        ("team", CHANNEL, ""),
        ("team", replace(CHANNEL, connector="slack", account="T1", kind=ChannelKind.SHARED), "team slack T1"),
    ],
)
async def test_whose_scope_an_answer_has(tmp_path: Path, kind: Any, place: ChannelRef, expected: str) -> None:
    async with opened(tmp_path, kind) as bot:
        user = UserRef(connector="loopback", account="loopback", id=ADA)
        assert await bot.app.scopes.of(place, user) == expected


async def test_what_a_teams_adapter_learns_of_private_chats_needs_consent(tmp_path: Path) -> None:
    async with opened(tmp_path, "team") as bot:
        await bot.command("pause")
        await rated(bot, ADA)
        mark = "UPDATE turns SET own = 'team slack T1'"
        await bot.store.write(lambda db: db.execute(mark))
        pool = bot.app.scopes.pool("team slack T1")
        assert await bot.store.read(lambda db: training_pool.available(db, pool, 100)) == 0
        assert await bot.app.scopes.next() is None
        await bot.command("share", "on", user=ADA)
        assert await bot.store.read(lambda db: training_pool.available(db, pool, 100)) == 8
        assert pool.scope != SHARED


async def test_status_why_and_rollback_are_about_the_own_version(tmp_path: Path) -> None:
    async with opened(tmp_path) as bot:
        await bot.command("pause")
        await rated(bot, "owner", 1)
        assert "For you alone: no version yet; 1 of 8 ratings" in await bot.command("status")
        await rated(bot, "owner", 7)
        trainer = await bot.app.scopes.next()
        assert trainer is not None
        await trainer.run(())
        assert await version(bot, "owner") == 1
        assert "For you alone: v1; 2 of 8 ratings" in await bot.command("status")
        assert "For you alone: no version yet; 0 of 8" in await bot.command("status", user=ADA)
        assert "For you alone: this version answers nobody else." in await bot.command("why")
        asked = await bot.command("rollback")
        assert "shall the shared version answer again instead of v1?" in asked
        assert await version(bot, "owner") == 1
        assert "the shared version answers again" in await bot.command("rollback", "yes")
        assert await version(bot, "owner") == 0


class Writing:
    """What the converter makes of real weights: `tests/training/test_sums.py` has that."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[tuple[str, str]] = []
        self.meanwhile: Callable[[], Awaitable[object]] | None = None
        monkeypatch.setattr(Formats, "rebase", self._rebase)

    async def _rebase(self, own: Path, rests_on: Path | None, onto: Path | None, output: Path) -> None:
        self.asked.append((own.name[:7], onto.name[:7] if onto else ""))
        output.mkdir()
        for name in ("adapter_config.json", "adapter_model.safetensors"):
            (output / name).write_bytes((own / name).read_bytes())
        if self.meanwhile is not None:
            await self.meanwhile()


@pytest.fixture
def writing(monkeypatch: pytest.MonkeyPatch) -> Writing:
    return Writing(monkeypatch)


async def goes_back(bot: Bot, who: str) -> str:
    """From the version that answers that person alone; what is said then."""
    await bot.command("rollback", user=who)
    return await bot.command("rollback", "yes", user=who)


async def learn(bot: Bot, who: str) -> list[Answer]:
    """That person's own version, before the shared one moves; what it may have learnt from."""
    answers = await rated(bot, who)
    assert await trains(bot)
    return answers


async def moves_on(bot: Bot) -> int:
    """Another shared version answers; nobody has anything to learn from."""
    before = await bot.app.registry.active()
    await rated(bot, "owner")

    async def moved() -> bool:
        return await bot.app.registry.active() != before

    await until(moved)
    await bot.settle()
    assert await trains(bot), "the owner's own, before anything is put on it"
    return await bot.app.registry.active()


async def test_what_was_learnt_is_put_on_the_shared_version_that_comes(
    tmp_path: Path, writing: Writing
) -> None:
    async with opened(tmp_path) as bot:
        for who in (ADA, BOB):
            await learn(bot, who)
        shared = await moves_on(bot)
        assert writing.asked == [], "what is to be trained goes before"
        await bot.command("pause")
        await trains(bot)
        assert writing.asked == [], "pause holds for all"
        await bot.command("resume")
        assert not await trains(bot)
        assert writing.asked == [("v000001", f"v{shared:06}")], "one at a time"
        await trains(bot)
        await trains(bot)
        assert writing.asked == [(f"v00000{hers}", f"v{shared:06}") for hers in (1, 2)]
        now = await bot.app.scopes.registry(HER).row(await version(bot, ADA))
        assert (now.parent, now.metrics["shared"], now.run) == (1, shared, None)
        run = (await bot.app.registry.row(shared)).run or 0
        gone = await bot.store.write(lambda db: adapters.mark(db, SHARED, {run}, "a test"))
        assert {shared, now.version} <= {*gone}, "it is a part of what answered her"


@pytest.mark.parametrize("what", ["undo", "forget", "rollback", "withdrawn", "training", "number"])
async def test_what_has_changed_while_it_was_written_is_not_put_on(
    tmp_path: Path, writing: Writing, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    async with opened(tmp_path) as bot:
        answers = await learn(bot, ADA)
        shared = await moves_on(bot)

        async def meanwhile() -> None:
            if what == "undo":
                for number, answer in enumerate(answers):
                    await bot.unreact(answer, "👍" if number % 2 == 0 else "👎", user=ADA)
            elif what == "forget":
                await bot.command("forget", "me", user=ADA)
                await bot.command("forget", "me yes", user=ADA)
            elif what == "rollback":
                await goes_back(bot, ADA)
            elif what == "withdrawn":
                run = (await bot.app.registry.row(shared)).run or 0
                await bot.store.write(lambda db: adapters.mark(db, SHARED, {run}, "a test"))
            elif what == "number":
                given, real = iter([shared]), adapters.next_version

                async def next_version(db: Any) -> int:
                    return next(given, 0) or await real(db)

                monkeypatch.setattr(adapters, "next_version", next_version)

        def there() -> int:
            return len([*bot.app.registry.root.glob("v*")])

        writing.meanwhile = meanwhile
        before, lie = await rows(bot.store, "SELECT max(version) FROM adapters"), there()
        await bot.app.scopes._rebasing.look(lambda: what == "training")
        assert len(writing.asked) == 1
        assert await rows(bot.store, "SELECT max(version) FROM adapters") == before
        assert there() <= lie, "nothing is left of it"
        if what in ("training", "number"):
            writing.meanwhile = None
            await bot.app.scopes._rebasing.look(lambda: False)
            assert await version(bot, ADA) == shared + 2, "it is tried anew"


async def test_who_goes_back_does_not_come_to_what_was_only_put_on_another(
    tmp_path: Path, writing: Writing
) -> None:
    async with opened(tmp_path) as bot:
        for _ in range(2):
            await learn(bot, ADA)
        shared = await moves_on(bot)
        await trains(bot)
        assert await version(bot, ADA) == 5, "v2 on the new one"
        assert "v1 answers again" in await goes_back(bot, ADA)
        await trains(bot)
        again = await bot.app.scopes.registry(HER).row(await version(bot, ADA))
        assert (again.version, again.parent) == (6, 1)
        assert "the shared version answers again" in await goes_back(bot, ADA)
        await trains(bot)
        assert await version(bot, ADA) == shared
        assert len(writing.asked) == 2


async def test_where_others_read_along_nobodys_own_version_answers(tmp_path: Path) -> None:
    async with opened(tmp_path) as bot:
        await rated(bot, ADA)
        assert await trains(bot)
        await bot.command("enable", channel="#den")
        assert await version(bot, ADA) == 1
        assert await version(bot, ADA, "#den") == 0
        assert "For you alone" not in await bot.command("status", user=ADA, channel="#den")
        told = await rows(bot.store, "SELECT own FROM turns WHERE channel_kind = 'shared'")
        assert told == [(HER,)], "what she says of it is hers all the same"


async def test_nobody_else_teaches_the_version_that_answers_one_person(tmp_path: Path) -> None:
    async with opened(tmp_path) as bot:
        await bot.command("pause")
        await bot.command("enable", channel="#den")
        answers = await rated(bot, ADA, 8, "#den")
        await bot.react(answers[0], "👍", user=BOB)
        hers, shared = bot.app.scopes.pool(HER), bot.app.pool
        counts = [
            await bot.store.read(lambda db, p=p: training_pool.available(db, p, 100)) for p in (hers, shared)
        ]
        assert counts == [7, 8], "what Bob has rated, too, teaches the shared one alone"
        found = await bot.store.read(lambda db: training_pool.candidates(db, hers))
        assert {rater for one in found for rater in one.labels} == {f"loopback:{ADA}"}
        await bot.unreact(answers[0], "👍", user=BOB)
        assert await bot.store.read(lambda db: training_pool.available(db, hers, 100)) == 8


# -- back from it


async def test_a_person_goes_back_from_their_own_version_alone(tmp_path: Path) -> None:
    async with opened(tmp_path) as bot:
        await bot.command("enable", channel="#den")
        nobody = await bot.command("rollback", user=ADA)
        assert "owner" in nobody, "she has none yet"
        for who in (ADA, BOB):
            await rated(bot, who)
            assert await trains(bot)
        for words in (
            "1",
            "2",
            "base",
            "all",
            "all yes",
            "2 yes",
            "since 2020-01-01",
            "person loopback:rater",
        ):
            assert await bot.command("rollback", words, user=ADA) == nobody, words
        for command in ("adapters", "compare", "compare a", "compare 0 1 hello", "train", "pause"):
            name, _, words = command.partition(" ")
            assert "owner" in await bot.command(name, words, user=ADA), command
        assert "shall" not in await bot.command("rollback", user=ADA, channel="#den")
        assert "`/rl rollback` goes back from it." in await bot.command("why", user=ADA)
        asked = await bot.command("rollback", user=ADA)
        assert "shall the shared version answer again instead of v1?" in asked
        bot.fake.set(train="slow")
        await rated(bot, "owner")
        await until(lambda: bot.app.scheduler.training)
        assert "the shared version answers again" in await bot.command("rollback", "yes", user=ADA)
        assert bot.app.scheduler.training, "nobody else's training is ended"
        bot.fake.go()
        await until(bot.app.registry.active)
        await until(lambda: not bot.app.scheduler.training)
        shared = await bot.app.registry.active()
        assert [await version(bot, who) for who in (ADA, BOB)] == [shared, 2]
        assert await bot.command("rollback", user=ADA) == nobody
        [(trail,)] = await rows(
            bot.store, "SELECT count(*) FROM audit WHERE action = 'rollback' AND detail LIKE '%done%'"
        )
        assert trail == 1


# -- which of two is better for them


def asked_of(bot: Bot, who: str) -> list[Answer]:
    return [one for one in questions(bot) if one.message.channel.id == who]


async def chosen(bot: Bot, who: str, liked: int, count: int) -> str:
    """Press for a version so often, beginning at the newest question; what was said last."""
    question = asked_of(bot, who)[-1]
    text, offer = question.text, question.buttons
    for _ in range(count):
        action = next(one for one in offer if one.endswith(f" {letter(text, liked)}"))
        receipt = await bot.chat.press(question, action, user=who)
        text, offer = receipt.text, tuple(button.action for button in receipt.offer)
    return text


@pytest.mark.parametrize("ask", ["after", "before"])
async def test_whose_version_it_is_is_asked_and_nobody_else(tmp_path: Path, ask: Any) -> None:
    serving = ServingConfig(history=0, ask=ask)
    async with opened(tmp_path, sections={"serving": serving}) as bot:
        for who in (ADA, BOB):
            await rated(bot, who)
            assert await trains(bot)
        live = [1, 2] if ask == "after" else [0, 0]
        assert [await version(bot, who) for who in (ADA, BOB)] == live
        await bot.app.own_questions.look()
        assert {one.message.channel.id for one in questions(bot)} == {ADA, BOB}
        assert asked_of(bot, ADA)[0].text.count("That version answers you alone.") == 1
        assert "`/rl compare` asks whether v1 is better for you" in await bot.command("status", user=ADA)
        pair = asked_of(bot, BOB)[0].buttons[0].split()[1]
        assert "closed" in await bot.command("compare", f"{pair} a", user=ADA), "it is Bob's"
        assert "nothing to compare" in await bot.command("compare")
        end = await chosen(bot, ADA, 0, 4)
        assert end.endswith("The base model answers again." if ask == "after" else "v1 does not go live.")
        end = await chosen(bot, BOB, 2, 5 if ask == "after" else 2)
        assert end.endswith("v2 stays." if ask == "after" else "v2 may go live.")
        assert [await version(bot, who) for who in (ADA, BOB)] == [0, 2]
        assert await version(bot, "owner") == await bot.app.registry.active() == 0
        await bot.command("compare", "undo", user=BOB)
        taken = "SELECT count(*) FROM pairs WHERE chosen_by = ? AND choice = 'skip'"
        assert await rows(bot.store, taken, (f"loopback:{BOB}",)) == [(1,)]


async def test_their_first_version_is_compared_with_the_shared_one(tmp_path: Path) -> None:
    serving = ServingConfig(history=0, ask="after")
    async with opened(tmp_path, sections={"serving": serving}) as bot:
        await rated(bot, "owner")
        await until(bot.app.registry.active)
        await bot.command("pause")
        await rated(bot, ADA)
        trainer = await bot.app.scopes.next()
        while trainer is not None:  # the owner has one, too
            await trainer.run(())
            trainer = await bot.app.scopes.next()
        await bot.command("resume")
        [(old, new)] = await rows(bot.store, "SELECT old, new FROM comparisons WHERE scope = ?", (HER,))
        assert (old, await version(bot, ADA)) == (1, new)
        await bot.app.own_questions.look()
        assert (await chosen(bot, ADA, 1, 4)).endswith("v1 answers again.")
        assert await version(bot, ADA) == 1
        pointer = "SELECT version FROM pointers WHERE scope = ?"
        assert await rows(bot.store, pointer, (HER,)) == [(0,)], "the shared one, whichever comes"
