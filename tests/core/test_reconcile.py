"""Core rule 8: reactions that were missed are read again where a platform can be asked."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from goodbot import Capability, Event, OpenTurn, OrderKey, RatingEvent, RatingKind

from tests.core.builders import open_bot


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
                    event_id="missed", order=OrderKey(5), user=user, channel=message.channel,
                    kind=RatingKind.RATE, message_id=message.id, source="reaction:👍", value=1.0,
                )
            ]  # fmt: skip

        bot.chat.reconcile = reconcile
        await bot.app._reconcile()
        assert (asked, (await bot.status())["ratings"]) == ([], 0), "it declares no RECONCILE"

        capabilities = bot.chat.spec.capabilities | Capability.RECONCILE
        bot.chat.spec = dataclasses.replace(bot.chat.spec, capabilities=capabilities)
        for _ in range(2):
            await bot.app._reconcile()
            assert (await bot.status())["ratings"] == 1
        assert [[turn.turn for turn in turns] for turns in asked] == [[answer.turn]] * 2
