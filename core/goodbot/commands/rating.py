"""good, bad, undo: rate the answer that is replied to, or the last one here."""

from __future__ import annotations

from dataclasses import asdict

import aiosqlite

from goodbot.commands.base import Call, Command, Result
from goodbot.errors import UsageError
from goodbot.events import ChannelRef, Outcome, RatingEvent, RatingKind, Receipt
from goodbot.people.authorization import Grant, person
from goodbot.store import people, turns


async def good(call: Call) -> Result:
    return await _rate(call, RatingKind.RATE, 1.0)


async def bad(call: Call) -> Result:
    return await _rate(call, RatingKind.RATE, -1.0)


async def undo(call: Call) -> Result:
    return await _rate(call, RatingKind.RETRACT, None)


async def _rate(call: Call, kind: RatingKind, value: float | None) -> Result:
    event = call.event

    async def operation(db: aiosqlite.Connection) -> tuple[Receipt, str]:
        turn = await _target(db, call, rated=kind is RatingKind.RETRACT)
        rating = RatingEvent(
            event_id=event.event_id, order=event.order, user=event.user, channel=event.channel,
            kind=kind, turn=turn, source="command" if kind is RatingKind.RATE else "", value=value,
        )  # fmt: skip
        receipt = await call.services.dispatcher.rate(db, rating, turn)
        stored = await turns.get(db, turn)
        return receipt, stored.response if stored else ""

    receipt, response = await call.services.store.write(operation)
    if receipt.outcome is Outcome.ACCEPTED:
        call.services.dispatcher.rated()
    quote = " ".join(response.split())
    quote = quote if len(quote) <= 40 else quote[:39] + "…"
    return Result(text=f"{receipt.text} “{quote}”", data={**asdict(receipt), "response": response})


async def _target(db: aiosqlite.Connection, call: Call, *, rated: bool) -> str:
    """The turn that is meant. Raises UsageError with what to do instead."""
    channel = call.event.channel
    if call.args:
        turn = await turns.get(db, call.args[0])
        own = turn is not None and _place(turn.channel) == _place(channel)
        if turn is None or not (
            own or call.services.authorization.may(call.user, Grant.ADMINISTER)
        ):
            raise UsageError(f"there is no answer {call.args[0]!r}: see `history`")
        return turn.id
    if call.event.reply_to:
        found = await turns.by_message(db, channel, call.event.reply_to)
        if found is None:
            raise UsageError("that message is not one of my answers: reply to one of them")
        return found
    rater = await people.identity(db, person(call.user))
    found = await turns.last_in(db, channel, rated_by=rater if rated else "")
    if found is None:
        raise UsageError(
            "there is nothing to undo here" if rated else "there is no answer here yet to rate"
        )
    return found


def _place(channel: ChannelRef) -> tuple[str, str, str]:
    """A channel without its thread, which not every platform names with a rating."""
    return (channel.connector, channel.account, channel.id)


COMMANDS = (
    Command(
        name="good",
        aliases=("yes", "y", "+1", "+", "👍", "up"),
        grant=Grant.RATE,
        personal=True,
        run=good,
        summary="the answer was good (reply to it, or it means the last one)",
        usage="[ANSWER]",
    ),
    Command(
        name="bad",
        aliases=("no", "n", "-1", "-", "👎", "down"),
        grant=Grant.RATE,
        personal=True,
        run=bad,
        summary="the answer was bad",
        usage="[ANSWER]",
    ),
    Command(
        name="undo",
        aliases=("u",),
        grant=Grant.RATE,
        personal=True,
        run=undo,
        summary="take your rating back",
        usage="[ANSWER]",
    ),
)
