# SPDX-License-Identifier: Apache-2.0
"""thought: what the model thought before an answer, for who asked for that answer."""

from __future__ import annotations

from goodbot.api.commands import Grant
from goodbot.api.texts import say
from goodbot.api.turns import Turn
from goodbot.commands.base import Call, Result, wrong
from goodbot.store import turns


async def thought(call: Call) -> Result:
    """Of the answer that is named, or of the last one here: to whom it was given, and to owners."""
    store, channel = call.services.store, call.event.channel
    named = call.args[0] if call.args else ""
    id_ = named or await store.read(lambda db: turns.last_in(db, channel))
    turn = await store.read(lambda db: turns.get(db, id_)) if id_ else None
    if turn is None or not _may(call, turn):
        raise wrong(call.event, "wrong_thought")
    text = turn.thought or say("no_thought", call.user.language)
    return Result(text=text, data={"turn": turn.id, "thought": turn.thought}, turn=turn.id)


def _may(call: Call, turn: Turn) -> bool:
    own = turn.talker == call.user
    return own or call.services.authorization.may(call.user, Grant.ADMINISTER)
