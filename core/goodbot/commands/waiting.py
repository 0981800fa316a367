# SPDX-License-Identifier: Apache-2.0
"""waiting: the newest answers that somebody may rate and has not, one by one.

Where an owner lets the reward model choose, those that it is least sure of stand before the newest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace

import aiosqlite

from goodbot.access.inbox import viewer_of
from goodbot.api.actions import run
from goodbot.api.events import Button, ChannelKind, Waiting
from goodbot.api.texts import joined, say
from goodbot.commands import rating
from goodbot.commands.base import Call, Result, wrong
from goodbot.learning import reward_model
from goodbot.store import review_queue

MOST = 5


async def waiting(call: Call) -> Result:
    """The one of that number, the first without one; `good TURN` or `bad TURN` rates, and shows the next."""
    if call.event.channel.kind is not ChannelKind.PRIVATE:
        raise wrong(call.event, "wrong_compare_private")
    match call.args:
        case ():
            return await _shown(call)
        case (number,) if number in {str(n) for n in range(1, MOST + 1)}:
            return await _shown(call, int(number))
        case ("good" | "bad" as word, turn):
            rate = rating.good if word == "good" else rating.bad
            said = await rate(replace(call, args=(turn,)))
            if said.offer:  # what was wrong with it is asked for while the answer is at hand
                return replace(
                    said, offer=(*said.offer, run("waiting", say("button_next", call.user.language)))
                )
            return await _shown(call, said=said.text)
        case _:
            raise wrong(call.event, "wrong_waiting")


async def _shown(call: Call, number: int = 1, said: str = "") -> Result:
    found = await call.services.store.read(lambda db: _found(db, call))
    data = {"waiting": [asdict(one) for one in found]}
    language = call.user.language
    if not found:
        return Result(text=f"{said}\n\n{say('waiting_none', language)}".strip(), data=data)
    number = min(number, len(found))
    one = found[number - 1]
    many = say("waiting_told", language, count=len(found))
    head = joined(language, many, say("waiting_number", language, number=number))
    text = f"{head}\n\n> {' '.join(one.question.split())}\n\n{one.answer}"
    offer = _buttons(one, number, len(found), language)
    return Result(text=f"{said}\n\n{text}".strip(), offer=offer, data=data)


def _buttons(one: Waiting, number: int, count: int, language: str) -> tuple[Button, ...]:
    rated = (
        run(f"waiting good {one.turn}", say("button_good", language)),
        run(f"waiting bad {one.turn}", say("button_bad", language)),
    )
    if count == 1:
        return rated
    return (*rated, run(f"waiting {number % count + 1}", say("button_another", language)))


async def _found(db: aiosqlite.Connection, call: Call) -> Sequence[Waiting]:
    viewer = await viewer_of(db, call.services.authorization, call.user)
    if viewer is None:
        return ()
    newest = await review_queue.page(db, viewer, review_queue.Filter(), MOST)
    predicting = reward_model.asks(call.services)
    if not predicting:
        return newest
    unsure = await review_queue.page(db, viewer, review_queue.Filter(unsure=predicting), MOST)
    return [*dict.fromkeys((*unsure, *newest))][:MOST]
