# SPDX-License-Identifier: Apache-2.0
"""good, bad, stars, reason, better, undo: of the answer that is replied to, or the last one here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace

import aiosqlite

from goodbot.access.authorization import person
from goodbot.access.inbox import viewer_of
from goodbot.api.commands import Grant
from goodbot.api.events import ChannelKind, ChannelRef, Outcome, RatingEvent, RatingKind, Receipt
from goodbot.api.labels import STARS, star_value
from goodbot.api.sentences import because, clause
from goodbot.base.errors import UsageError
from goodbot.commands.base import Call, Result, wrong
from goodbot.store import feedback, ledger, people, review_queue, turns

_STARS = tuple(str(count) for count in range(STARS + 1))


@dataclass(frozen=True, kw_only=True, slots=True)
class _Recorded:
    """What a command has said of an answer."""

    rating: RatingEvent
    receipt: Receipt
    nothing: bool
    """It has changed nothing."""


async def good(call: Call) -> Result:
    return await _rate(call, call.args, 1.0)


async def bad(call: Call) -> Result:
    return await _rate(call, call.args, -1.0)


async def stars(call: Call) -> Result:
    """Beside a thumb, not instead of it; 0 takes the stars back and leaves the thumb."""
    wanted = call.args[0].strip("★⭐\ufe0f") if call.args else ""
    if wanted not in _STARS:
        raise wrong(call.event, "wrong_stars")
    value = star_value(int(wanted)) if wanted != "0" else None
    return await _rate(call, call.args[1:], value, "stars")


async def undo(call: Call) -> Result:
    return await _rate(call, call.args, None, "")


async def reason(call: Call) -> Result:
    return await _say(call, RatingKind.COMMENT, "reason")


async def better(call: Call) -> Result:
    return await _say(call, RatingKind.BETTER, "better")


async def _say(call: Call, kind: RatingKind, word: str) -> Result:
    """Keep the words as they were typed, with their lines; the first may name the answer."""
    text = call.event.args.strip()
    first = call.args[0] if call.args else ""
    if call.within is not None:
        named = await _named(call.within, call, first)
    else:
        named = await call.services.store.read(lambda db: _named(db, call, first))
    if named:
        text = text.removeprefix(first).strip()
    if not text:
        raise wrong(call.event, "wrong_no_text", word=word)
    return await _record(call, (first,) if named else (), kind, text=text)


async def _rate(call: Call, args: tuple[str, ...], value: float | None, source: str = "command") -> Result:
    """Rate what is meant; without a value take back what the source said, or without one all."""
    kind = RatingKind.RETRACT if value is None else RatingKind.RATE
    return await _record(call, args, kind, value=value, source=source)


async def _record(
    call: Call,
    args: tuple[str, ...],
    kind: RatingKind,
    *,
    value: float | None = None,
    source: str = "command",
    text: str = "",
) -> Result:
    """Say it; of an answer that was found when the command came in, of that one. Within that transaction,
    tell of it `later`; the result has a turn where it was stored.
    """

    async def operation(db: aiosqlite.Connection) -> _Recorded:
        turn = await ledger.said_of(db, call.user, call.event.event_id)
        turn = turn or await _target(db, call, args, rated=kind is RatingKind.RETRACT)
        rating = call.rating(turn, kind, source=source, value=value, text=text)
        before = await _said(db, turn)
        receipt = await call.services.ratings.rate(db, rating, turn)
        if receipt.outcome is Outcome.FAILED:
            raise UsageError(clause(receipt.text))
        nothing = not receipt.duplicate and before == await _said(db, turn)
        if nothing and not source:  # where a rating of theirs stands all the same, the receipt says which
            nothing = await people.identity(db, person(call.user)) not in before[0]
        return _Recorded(rating=rating, receipt=receipt, nothing=nothing)

    if call.within is None:
        return await _told(call, await call.services.store.write(operation))
    recorded = await operation(call.within)
    kept = recorded.receipt.outcome is Outcome.ACCEPTED
    return Result(text="", turn=recorded.receipt.turn if kept else "", later=lambda: _told(call, recorded))


async def _told(call: Call, recorded: _Recorded) -> Result:
    """What follows once it is stored, and what is said of it."""
    rating, receipt = recorded.rating, recorded.receipt
    if receipt.outcome is Outcome.ACCEPTED:
        call.services.scheduler.wake()
        if not receipt.duplicate:
            await call.services.plugins.on_rating(rating, receipt)
    taken_back = rating.kind is RatingKind.RETRACT and receipt.outcome is Outcome.ACCEPTED
    if taken_back and recorded.nothing:
        receipt = replace(receipt, text=call.event.say(because("nothing_said")))
    # Its words as they are now: its talker may have been forgotten while this waited to be told.
    stored = await call.services.store.read(lambda db: turns.get(db, rating.turn))
    response = stored.response if stored else ""
    quote = " ".join(response.split())
    quote = quote if len(quote) <= 40 else quote[:39] + "…"
    return Result(
        text=f"{receipt.text} “{quote}”" if stored else receipt.text,
        turn=receipt.turn,
        offer=receipt.offer,
        data={**asdict(receipt), "response": response},
    )


async def _said(db: aiosqlite.Connection, turn: str) -> tuple[Mapping[str, object], Sequence[object]]:
    """What people think and said of an answer, as it stands."""
    return await ledger.labels(db, turn), await feedback.remarks(db, [turn])


async def _target(db: aiosqlite.Connection, call: Call, args: tuple[str, ...], *, rated: bool) -> str:
    """The turn that is meant. Raises UsageError with what to do instead."""
    channel = call.event.channel
    if args:
        if not await _named(db, call, args[0]):
            raise wrong(call.event, "wrong_turn", turn=repr(args[0]))
        return args[0]
    if call.event.reply_to:
        found = await turns.by_message(db, channel, call.event.reply_to)
        if found is None:
            raise wrong(call.event, "wrong_message")
        return found
    rater = await people.identity(db, person(call.user))
    found = await turns.last_in(db, channel, rated_by=rater if rated else "")
    if found is None:
        raise wrong(call.event, "wrong_nothing_to_undo" if rated else "wrong_nothing_to_rate")
    newest = None if rated else await turns.get(db, found)
    if newest is not None and newest.origin == "captured":
        # Programs answer many things at once: the newest may be one that nobody has read.
        raise wrong(call.event, "wrong_which")
    return found


async def _named(db: aiosqlite.Connection, call: Call, word: str) -> bool:
    """Whether a word is the id of an answer that this person may speak of here."""
    turn = await turns.get(db, word)
    if turn is None or turn.kind != "main":
        return False
    here = _place(turn.channel) == _place(call.event.channel)
    authorization = call.services.authorization
    if here or authorization.may(call.user, Grant.ADMINISTER):
        return True
    private = call.event.channel.kind is ChannelKind.PRIVATE
    viewer = await viewer_of(db, authorization, call.user) if private else None
    return viewer is not None and await review_queue.visible(db, viewer, turn.id)


def _place(channel: ChannelRef) -> tuple[str, str, str]:
    """A channel without its thread, which not every platform names with a rating."""
    return (channel.connector, channel.account, channel.id)
