# SPDX-License-Identifier: Apache-2.0
"""What a version of somebody's own has learnt stays theirs: when it asks, is joined, or is forgotten."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from goodbot.access import linking
from goodbot.api.sentences import in_words
from goodbot.config import Grants, ServingConfig
from goodbot.store import comparisons, people, runs, training_pool
from goodbot.store.pools import SHARED, Pool

from tests.core.builders import Bot, check_store, rows
from tests.core.learning.evaluation.asking import questions
from tests.core.learning.test_scopes import ADA, BOB, HER, asked_of, chosen, opened, rated, trains, version

HIS = f"person loopback:{BOB}"
ASKED = ServingConfig(history=0, ask="after")


async def available(bot: Bot, key: str) -> int:
    pool = bot.app.scopes.pool(key)
    return await bot.store.read(lambda db: training_pool.available(db, pool, 100))


async def test_a_question_about_a_persons_version_is_of_their_private_chat_alone(tmp_path: Path) -> None:
    async with opened(tmp_path, sections={"serving": ASKED}) as bot:
        await bot.command("enable", channel="#den")
        await bot.command("pause")
        await rated(bot, ADA, 2)
        await rated(bot, ADA, 3, "#den")
        her, shared = bot.app.scopes.pool(HER), bot.app.pool
        accounts = [f"loopback:{ADA}"]
        kinds = [
            {
                str(turn.channel.kind)
                for turn in await bot.store.read(lambda db, p=p: comparisons.prompts(db, p, accounts, 0, 9))
            }
            for p in (her, shared)
        ]
        assert kinds == [{"private"}, {"shared"}], "the newest of each question"


async def test_what_is_chosen_there_teaches_the_shared_version_with_consent_alone(tmp_path: Path) -> None:
    async with opened(tmp_path, sections={"serving": ASKED}) as bot:
        await bot.command("enable", channel="#den")
        await rated(bot, ADA)
        assert await trains(bot)
        await bot.command("pause")
        await bot.say("What do all know?", user=ADA, channel="#den")
        before = await available(bot, "")
        await bot.command("resume")
        await bot.app.own_questions.look()
        await chosen(bot, ADA, 1, 2)
        made = await rows(bot.store, "SELECT DISTINCT channel_kind FROM turns WHERE kind = 'choice'")
        assert made == [("private",)]
        assert await available(bot, "") == before


async def test_who_may_not_rate_teaches_nothing_by_choosing(tmp_path: Path) -> None:
    async with opened(tmp_path, sections={"serving": ASKED}) as bot:
        await rated(bot, ADA)
        assert await trains(bot)
        await bot.app.own_questions.look()
        assert asked_of(bot, ADA) == questions(bot)
        authorization: Any = bot.app.authorization
        authorization._config["loopback"] = Grants(owners=("owner",), talkers=(ADA,))
        assert (await chosen(bot, ADA, 0, 4)).endswith("The base model answers again."), "it decides theirs"
        assert await rows(bot.store, "SELECT id FROM turns WHERE kind = 'choice'") == []
        assert await version(bot, ADA) == 0


async def test_what_an_account_taught_alone_teaches_anew_where_it_is_joined(tmp_path: Path) -> None:
    async with opened(tmp_path) as bot:
        await rated(bot, BOB)
        assert await trains(bot)
        one, other = f"loopback:{ADA}", f"loopback:{BOB}"
        await bot.store.write(lambda db: linking.join(db, SHARED, one, other, 1.0))
        key = f"person {await bot.store.read(lambda db: people.identity(db, one))}"
        assert key == HER
        assert await rows(bot.store, "SELECT DISTINCT own, own_spent FROM turns") == [(HER, None)]
        assert await rows(bot.store, "SELECT scope FROM pointers WHERE scope = ?", (HIS,)) == []
        await check_store(bot.store)


async def test_forgetting_removes_the_folders_of_all_runs_that_are_over(tmp_path: Path) -> None:
    async with opened(tmp_path) as bot:
        await bot.command("pause")
        for who in (ADA, BOB, "owner"):
            await rated(bot, who)
        found, staging = dict[str, int](), bot.app.config.home / "staging"
        for key in (HER, HIS, ""):
            pool = bot.app.scopes.pool(key)
            found[key] = await bot.store.write(lambda db, p=pool: _begun(db, p))
            (staging / f"run-{found[key]}" / "checkpoints").mkdir(parents=True)
        await bot.command("forget", "me", user=ADA)
        await bot.command("forget", "me yes", user=ADA)
        left = [folder.name for folder in staging.glob("run-*")]
        assert left == [f"run-{found[HIS]}"], "his was interrupted, and goes on; hers is over at once"


async def test_forgetting_names_no_private_chat_where_channels_have_versions(tmp_path: Path) -> None:
    async with opened(tmp_path, "channel") as bot:
        await bot.command("enable", channel="#den")
        await bot.say("Hello all.", user=BOB, channel="#den")
        await rated(bot, ADA)
        assert await trains(bot)
        [(key,)] = await rows(bot.store, "SELECT scope FROM pointers WHERE scope <> ?", (SHARED,))
        assert f'"{ADA}"' in key
        await bot.command("forget", "me", user=ADA)
        await bot.command("forget", "me yes", user=ADA)
        for table in ("runs", "adapters", "pointers", "comparisons", "canaries", "switches", "turns"):
            assert key not in repr(await rows(bot.store, f"SELECT * FROM {table}")), table
        assert await rows(bot.store, "SELECT count(*) FROM turns WHERE own LIKE '%den%'") == [(1,)]
        await check_store(bot.store)


async def _begun(db: Any, pool: Pool) -> int:
    """A run that is under way, and was interrupted."""
    items = [
        runs.RunItem(turn=one.turn.id, split="train", reward=1.0, labels={})
        for one in await training_pool.candidates(db, pool)
    ]
    return await runs.start(
        db, pool=pool, parent=0, cause=in_words("a test"), backend="fake", settings={}, items=items, now=1.0
    )
