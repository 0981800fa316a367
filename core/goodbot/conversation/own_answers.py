# SPDX-License-Identifier: Apache-2.0
"""One answer as the person sees it who asked for it, and what they said of it."""

from __future__ import annotations

import aiosqlite

from goodbot.access.authorization import Authorization, person
from goodbot.api.commands import Grant
from goodbot.api.events import RatingKind, UserRef
from goodbot.api.turns import OwnTurn
from goodbot.store import feedback, ledger, people, traces, turns


async def own_turn(
    db: aiosqlite.Connection, authorization: Authorization, user: UserRef, id_: str, *, all_here: bool = False
) -> OwnTurn | None:
    """A turn that `user` has asked for or reported; None for any other, and for one that is gone.

    `all_here`: an owner is shown all of that connector's.
    """
    turn = await turns.get(db, id_)
    if turn is None:
        return None
    here = turn.channel.connector == user.connector and turn.channel.account == user.account
    own = here and turn.talker.id == user.id
    owner = all_here and here and authorization.may(user, Grant.ADMINISTER)
    if not (own or owner or await traces.reported(db, user, id_)):
        return None
    who = await people.identity(db, person(user))
    label = (await ledger.labels(db, id_)).get(who)
    said = [one for one in await feedback.remarks(db, [id_]) if one.rater == person(user)]
    typed = [one.text for one in said if one.kind is RatingKind.BETTER]
    return OwnTurn(
        turn=turn,
        score=label[0] if isinstance(label, list) else label,
        comments=tuple(one.text for one in said if one.kind is RatingKind.COMMENT),
        better=typed[-1] if typed else None,
    )
