# SPDX-License-Identifier: Apache-2.0
"""A new version on a share of the conversations: who meets it, and when that is over."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from goodbot.config import ServingConfig
from goodbot.daemon.loopback import Answer
from goodbot.learning import canary
from goodbot.learning.canary import TrialTally
from goodbot.store import canaries
from goodbot.store.acceptance import Acceptance
from goodbot.store.canaries import Trial

from tests.core.builders import Bot, check, open_bot
from tests.core.learning.adapters.test_proving import told
from tests.core.learning.adapters.test_registry import loaded, versions
from tests.core.made import CHANNEL

SHARE = 0.5
CHATS = [f"chat-{number}" for number in range(12)]


@contextlib.asynccontextmanager
async def trying(home: Path, *, train: bool = True, **fields: Any) -> AsyncGenerator[Bot]:
    """A goodbot whose v1 answers everybody, and v2 half of the conversations."""
    if train:
        async with open_bot(home) as bot:
            await versions(bot, 1)
    serving = ServingConfig(history=0, canary=SHARE, **fields)
    async with open_bot(home, sections={"serving": serving}) as bot:
        if train:
            await bot.rated(8)
            await bot.train()
        yield bot


async def ask(bot: Bot) -> dict[str, Answer]:
    return {chat: await bot.say("Who?", channel=chat) for chat in CHATS}


def by(answers: dict[str, Answer]) -> dict[str, str]:
    """Who answered in which conversation."""
    return {chat: answer.text.partition(" ")[0] for chat, answer in answers.items()}


async def rate(bot: Bot, good: dict[str, bool], rounds: int = 4) -> None:
    """Ask everywhere and rate by who answered, `rounds` times."""
    for _ in range(rounds):
        for answer in (await ask(bot)).values():
            who = answer.text.partition(" ")[0]
            await bot.react(answer, "👍" if good[who] else "👎")


async def trial(bot: Bot) -> Trial | None:
    registry = bot.app.registry
    return await bot.store.read(lambda db: canaries.last(db, registry.scope, registry.model))


# -- deciding


@pytest.mark.parametrize("version", [1, 2, 77])
def test_a_conversation_keeps_its_place_and_the_share_is_kept(version: int) -> None:
    rooms = [replace(CHANNEL, id=f"room {n}", thread=f"{n % 3}") for n in range(2000)]
    places = [canary._place(room, version) for room in rooms]
    assert places == [canary._place(room, version) for room in rooms]
    for share in (0.05, 0.3, 0.9):
        assert sum(place < share for place in places) / 2000 == pytest.approx(share, abs=0.04)
    others = [canary._place(room, version + 1) for room in rooms]
    both = sum(a < 0.3 and b < 0.3 for a, b in zip(places, others, strict=True))
    assert both / 2000 == pytest.approx(0.09, abs=0.03), "nobody is always the one who tries"


@pytest.mark.parametrize(
    ("new", "old", "days", "expected"),
    [
        ((0, 0), (0, 0), 1, ""),
        ((19, 19), (40, 40), 1, ""),  # too few, whatever they say
        ((20, 20), (40, 40), 1, ""),
        ((60, 60), (60, 60), 1, "passed"),
        ((190, 200), (180, 200), 1, "passed"),
        ((30, 40), (30, 40), 1, ""),  # as good as can be seen, and that is not far
        ((5, 40), (30, 40), 1, "lost"),
        ((0, 20), (20, 20), 1, "lost"),
        ((30, 40), (30, 40), 15, "passed"),  # nobody says that it is worse: the gate's word stands
        ((5, 40), (30, 40), 15, "lost"),
    ],
)
def test_enough_ratings_decide(
    new: tuple[int, int], old: tuple[int, int], days: float, expected: str
) -> None:
    began = Trial(version=2, against=1, state="running", reason="", began_at=0.0, ended_at=None)
    standing = TrialTally(
        trial=began,
        new=Acceptance(version=2, good=new[0], rated=new[1]),
        old=Acceptance(version=1, good=old[0], rated=old[1]),
    )
    assert standing.verdict(days * 86400) == expected


# -- in a running goodbot


async def test_a_share_of_the_conversations_meets_the_new_version_and_stays_with_it(tmp_path: Path) -> None:
    async with trying(tmp_path) as bot:
        first = by(await ask(bot))
        assert set(first.values()) == {"v1", "v2"}
        assert by(await ask(bot)) == first
        assert await bot.app.registry.active() == 1
        assert await loaded(bot) == [1, 2]
        assert "v2 is tried on 50% of the conversations: 0 of 0 rated" in await bot.command("status")
        await bot.app.news.look()
        assert len(told(bot, "v2 has passed the safety check. Some")) == 1
        turns = await bot.command("history", "5")
        assert " v2 " in turns
        assert " v1 " in turns
        await check(bot)
    async with trying(tmp_path, train=False) as bot:  # a restart changes nobody's side
        assert by(await ask(bot)) == first


async def test_its_conversations_stay_with_it_while_the_reconciler_looks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with trying(tmp_path) as bot:
        registry = bot.app.registry
        examine, seen = registry.health.examine, list[int]()

        async def looks(*args: Any, **options: Any) -> Any:
            seen.append(registry.canary)
            return await examine(*args, **options)

        monkeypatch.setattr(registry.health, "examine", looks)
        await registry.reconcile()
        assert seen == [2, 2]


async def test_a_run_that_continues_it_counts_when_it_passes_meanwhile(tmp_path: Path) -> None:
    async with trying(tmp_path) as bot:
        await bot.rated(8)
        await bot.start_training()
        tried = await trial(bot)
        assert tried is not None
        await bot.app.canary._pass(tried)
        assert await bot.app.registry.active() == 2
        assert (await bot.finish_training()).state == "activated"
        follower = await trial(bot)
        assert follower is not None
        assert (follower.version, follower.against) == (3, 2)


async def test_ratings_make_it_live_for_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(canary, "_MARGIN", 0.2)  # 48 ratings tell no less apart
    async with trying(tmp_path) as bot:
        await bot.app.canary.look()
        assert (await trial(bot)).state == "running"  # type: ignore[union-attr]
        await rate(bot, {"v1": True, "v2": True}, rounds=5)
        assert "points)" in await bot.command("status")
        await bot.app.canary.look()
        assert await bot.app.registry.active() == 2
        assert set(by(await ask(bot)).values()) == {"v2"}
        assert await loaded(bot) == [2]
        assert (await trial(bot)).state == "passed"  # type: ignore[union-attr]
        await bot.app.news.look()
        assert len(told(bot, "v2 has stood its trial")) == 1
        assert "is tried on" not in await bot.command("status")


async def test_ratings_take_it_back(tmp_path: Path) -> None:
    async with trying(tmp_path) as bot:
        await rate(bot, {"v1": True, "v2": False}, rounds=5)
        await bot.app.canary.look()
        assert await bot.app.registry.active() == 1
        assert set(by(await ask(bot)).values()) == {"v1"}
        assert await loaded(bot) == [1]
        assert (await trial(bot)).state == "lost"  # type: ignore[union-attr]
        assert await bot.app.registry.head() == 1, "no training goes on from it"
        await bot.app.news.look()
        [said] = told(bot, "v2 is taken back")
        assert "v1 goes on answering everybody" in said
        learnt = set(await bot.trained_by(2))
        await bot.train()
        assert not learnt & set(await bot.trained_by(3)), "what was rolled back is not trained again"


async def test_what_continues_a_version_that_has_lost_is_not_trained_on(tmp_path: Path) -> None:
    async with trying(tmp_path) as bot:
        await rate(bot, {"v1": True, "v2": False}, rounds=5)
        await bot.start_training()
        await bot.app.canary.look()
        assert (await trial(bot)).state == "lost"  # type: ignore[union-attr]
        run = await bot.last_run()
        assert (run.state, run.ending) == ("superseded", (canary.LOST,))


async def test_off_is_off_for_everybody(tmp_path: Path) -> None:
    async with trying(tmp_path) as bot:
        await bot.command("off")
        assert set(by(await ask(bot)).values()) == {"v0"}
        await bot.command("resume")
        assert set(by(await ask(bot)).values()) == {"v1", "v2"}


async def test_one_that_began_in_a_time_to_come_counts_from_now(tmp_path: Path) -> None:
    """Our clock was set back since."""
    async with trying(tmp_path) as bot:
        await bot.store.write(lambda db: db.execute("UPDATE canaries SET began_at = began_at + 1e9"))
        standing = await bot.app.canary.standing()
        assert standing is not None
        over = bot.app.clock.now() + canary._LONGEST
        assert (standing.verdict(over - 60), standing.verdict(over + 1)) == ("", "passed")
        await rate(bot, {"v1": True, "v2": True}, rounds=1)
        standing = await bot.app.canary.standing()
        assert standing is not None
        assert standing.new.rated + standing.old.rated == len(CHATS)


async def test_a_rollback_ends_it(tmp_path: Path) -> None:
    async with trying(tmp_path) as bot:
        await bot.rollback("base")
        assert set(by(await ask(bot)).values()) == {"v0"}
        assert (await trial(bot)).state == "superseded"  # type: ignore[union-attr]
        assert await loaded(bot) == []


async def test_an_undo_ends_it(tmp_path: Path) -> None:
    """What a canary learnt from a rating that is taken back, nobody meets."""
    async with trying(tmp_path) as bot:
        learnt = await bot.trained_by(2)
        answer = next(one for one in bot.answers if one.turn in learnt)
        await bot.react(answer, "👎" if learnt[answer.turn] > 0 else "👍")
        await bot.app.maintenance.look_after_server()
        assert set(by(await ask(bot)).values()) == {"v1"}
        assert await loaded(bot) == [1]


async def test_a_canary_that_the_server_lost_answers_as_the_active_version_and_comes_back(
    tmp_path: Path,
) -> None:
    async with trying(tmp_path) as bot:
        sides = by(await ask(bot))
        await bot.app.server.unload(2)
        assert set(by(await ask(bot)).values()) == {"v1"}
        await bot.app.registry.reconcile()
        assert by(await ask(bot)) == sides


async def test_a_canary_without_effect_is_none(tmp_path: Path) -> None:
    async with trying(tmp_path, train=False) as bot:
        bot.fake.set(first="base")
        await bot.rated(8)
        await bot.train()
        assert set(by(await ask(bot)).values()) == {"v0"}
        assert (await trial(bot)).state == "failed"  # type: ignore[union-attr]
        assert "v1 waits: the model server does not really serve it" in await bot.command("status")


async def test_switched_off_in_the_config_it_goes_live(tmp_path: Path) -> None:
    async with trying(tmp_path):
        pass
    async with open_bot(tmp_path) as bot:
        assert set(by(await ask(bot)).values()) == {"v1"}
        await bot.app.maintenance.look_after_server()
        assert set(by(await ask(bot)).values()) == {"v2"}
