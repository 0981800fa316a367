# SPDX-License-Identifier: Apache-2.0
"""Core rule 8: reactions that were missed are read again where a platform can be asked."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from goodbot import Capability, Event, OpenTurn, OrderKey, RatingEvent, RatingKind
from goodbot.store import reconciling

from tests.core.builders import open_bot, until


async def test_a_missed_reaction_becomes_a_rating_once(tmp_path: Path) -> None:
    asked: list[Sequence[OpenTurn]] = []
    async with open_bot(tmp_path) as bot:
        answer = await bot.say("Hello?")
        user = bot.chat.typed("x", user="owner").user

        async def reconcile(open_turns: Sequence[OpenTurn]) -> Sequence[Event]:
            asked.append(open_turns)
            [message] = open_turns[0].messages
            return [
                RatingEvent(
                    event_id="missed",
                    order=OrderKey(5),
                    user=user,
                    channel=message.channel,
                    kind=RatingKind.RATE,
                    message_id=message.id,
                    source="reaction:👍",
                    value=1.0,
                )
            ]

        bot.chat.reconcile = reconcile
        await bot.app.maintenance.once()
        assert (asked, (await bot.status())["ratings"]) == ([], 0), "it declares no RECONCILE"

        capabilities = bot.chat.spec.capabilities | Capability.RECONCILE
        bot.chat.spec = dataclasses.replace(bot.chat.spec, capabilities=capabilities)
        await until(lambda: bot.app.store.read(lambda db: reconciling.open_turns(db, "loopback", 0.0)))
        for _ in range(2):
            await bot.app.maintenance.once()
            assert (await bot.status())["ratings"] == 1
        assert [[turn.turn for turn in turns] for turns in asked] == [[answer.turn]] * 2


async def test_b1_what_is_said_while_the_platform_is_asked_is_the_last_word(tmp_path: Path) -> None:
    """A reaction that was seen, and taken off before all were asked about, counted for good."""
    async with open_bot(tmp_path) as bot:
        answer = await bot.say("Hello?")
        user = bot.chat.typed("x", user="owner").user

        async def reconcile(open_turns: Sequence[OpenTurn]) -> Sequence[Event]:
            [message] = open_turns[0].messages
            await bot.react(answer, "👍")
            await bot.unreact(answer, "👍")
            seen = RatingEvent(
                event_id="seen",
                order=OrderKey(int(bot.app.clock.now() * 1000) + 1, ours=True),
                user=user,
                channel=message.channel,
                kind=RatingKind.RATE,
                message_id=message.id,
                source="reaction:👍",
                value=1.0,
            )
            return [seen]

        bot.chat.reconcile = reconcile
        capabilities = bot.chat.spec.capabilities | Capability.RECONCILE
        bot.chat.spec = dataclasses.replace(bot.chat.spec, capabilities=capabilities)
        await until(lambda: bot.app.store.read(lambda db: reconciling.open_turns(db, "loopback", 0.0)))
        await bot.app.maintenance.once()
        assert await bot.labels(answer) == {}


async def test_a_platform_is_told_which_reactions_are_known(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        answer = await bot.say("Hello?")
        for user, emoji in (("owner", "👍"), ("owner", "👎"), ("rater", "👎"), ("stranger", "👍")):
            await bot.react(answer, emoji, user=user)
        await bot.unreact(answer, "👎", user="owner")
        message = answer.message.id
        await bot.command("undo", channel="owner", user="rater", reply_to=message)
        [turn] = await bot.app.store.read(lambda db: reconciling.open_turns(db, "loopback", 0.0))
        assert turn.reactions == {
            (message, "owner", "reaction:👍"),
            (message, "rater", "reaction:👎"),  # undone here, but still there on the platform
        }
