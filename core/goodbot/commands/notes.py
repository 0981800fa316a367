# SPDX-License-Identifier: Apache-2.0
"""notes (list, on, off, delete, edit, move): the lines that answers to a person follow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace

import aiosqlite

from goodbot.access.authorization import person
from goodbot.api.commands import Grant
from goodbot.api.events import ChannelKind, ChannelRef, CommandEvent, OrderKey, UserRef
from goodbot.api.turns import OwnNote
from goodbot.base.errors import UsageError
from goodbot.commands.audit import audit
from goodbot.commands.base import Call, Result
from goodbot.commands.services import Services
from goodbot.conversation import note_rules
from goodbot.store import channels, distilled
from goodbot.store import notes as lines
from goodbot.store.notes import EVERYBODY, Note

_USAGE = (
    "type `notes`, `notes on N`, `notes off N`, `notes delete N`, `notes edit N TEXT` or "
    "`notes move N me|everybody`; `notes` shows the numbers"
)
_LEARNT = (
    "My answers go on like that: I have learnt it. Take back the ratings it came from, and I unlearn it."
)
_NONE = "I keep nothing in mind. Say what was wrong with an answer: by a button under it, or `/rl reason`."
_NO_OWNER = "only an owner decides what holds for others"
_OFF = "My answers here follow no notes: they are off, or my model cannot follow them."
_FOR = {"person": "for you alone", "channel": "for this channel", "everybody": "for everybody"}


async def notes(call: Call) -> Result:
    """One of the actions; `list` without a word."""
    match call.args:
        case () | ("list",):
            return await _list(call)
        case ("on" | "off" as action,):
            return await _switch(call, action == "on")
        case ("on" | "off" | "delete" as action, number):
            return await _change(call, action, number)
        case ("edit", number, _, *_):
            return await _edit(call, number)
        case ("move", number, "me" | "everybody" as where):
            return await _move(call, number, where)
        case _:
            raise UsageError(_USAGE)


async def own_notes(services: Services, user: UserRef, words: Sequence[str]) -> list[OwnNote]:
    """The lines that answers to a person follow in private, after these words about them, if any.

    Raises UsageError.
    """
    channel = ChannelRef(connector=user.connector, account=user.account, id=user.id, kind=ChannelKind.PRIVATE)
    event = CommandEvent(event_id="", order=OrderKey(0), user=user, channel=channel, name="notes")
    call = Call(event=event, args=tuple(words), services=services)
    if words:
        await notes(call)
    return [
        OwnNote(
            number=note.id,
            text=note.text,
            used=note.used,
            edited=note.edited,
            ratings=len(note.ratings),
            shared=note.scope != "person",
            learnt=note.retired,
        )
        for note in await _shown(replace(call, args=()))
    ]


async def _shown(call: Call) -> list[Note]:
    found = await call.services.store.read(lambda db: _seen(db, call))
    in_use = {note.id for note in note_rules.effective(found)}
    return [note for note in note_rules.agreed(found) if note.id in in_use or not note.in_use]


async def _list(call: Call) -> Result:
    shown = await _shown(call)
    kept = await call.services.store.read(lambda db: call.services.notes.kept(db, call.event.channel))
    said = [*map(_line, shown)]
    if not (shown and kept):
        said.append(_NONE if kept else _OFF)
    return Result(text="\n".join(said), data={"notes": [asdict(note) for note in shown]})


def _line(note: Note) -> str:
    count = len(note.ratings)
    origin = "in your words" if note.edited else f"from {count} rating{'' if count == 1 else 's'}"
    whom = "" if note.scope == "person" else f", {_FOR[note.scope]}"
    state = "(off) " if not note.used else "(learnt) " if note.retired else ""
    return f"{note.id}  {state}“{note.text}”  {origin}{whom}"


async def _seen(db: aiosqlite.Connection, call: Call) -> list[Note]:
    """The person's own lines, and to an owner those that others have, too."""
    kept = call.services.notes
    own = await kept.of_person(db, person(call.user))
    return [*own, *(await kept.shared(db, call.event.channel) if _owns(call) else ())]


def _owns(call: Call) -> bool:
    return call.services.authorization.may(call.user, Grant.ADMINISTER)


async def _named(db: aiosqlite.Connection, call: Call, number: str) -> Note:
    """The line of that number. Raises UsageError for one that is not in this person's hands."""
    for note in await _seen(db, call):
        if str(note.id) == number:
            return note
    raise UsageError(f"you have no line {number[:20]!r}: `notes` shows yours")


async def _switch(call: Call, used: bool) -> Result:
    """Whether answers in a shared channel follow any."""
    channel = call.event.channel
    if channel.kind is not ChannelKind.SHARED:
        raise UsageError(
            f"type that in the channel that is meant; `notes {'on' if used else 'off'} N` is a line"
        )
    if not _owns(call):
        raise UsageError(_NO_OWNER)
    follows = await call.services.store.read(call.services.notes.follows)
    if used and not follows:
        raise UsageError("I follow none: the config says never, or my model cannot follow them")
    if not await call.services.store.write(lambda db: channels.set_notes(db, channel, used)):
        raise UsageError("this channel is off: type `/rl enable` first")
    await audit(call, "notes", {"done": True})
    return Result(
        text="My answers here follow notes from now on." if used else "My answers here follow no notes."
    )


async def _change(call: Call, action: str, number: str) -> Result:
    async def operation(db: aiosqlite.Connection) -> tuple[Note, bool]:
        note = await _named(db, call, number)
        taught = await distilled.taught(db, note.id)
        if action == "delete":
            await lines.delete(db, [note.id])
        else:
            await lines.switch(db, note.id, action == "on")
            if action == "on":
                await distilled.keep(db, note.id)
        return note, taught

    note, taught = await call.services.store.write(operation)
    if note.scope != "person":
        await audit(call, "notes", {"done": True})
    done = {
        "on": "I keep this in mind again",
        "off": "I do not follow this any more",
        "delete": "This is gone; your ratings still count",
    }[action]
    text = f"{done}: “{note.text}”"
    if taught and action != "on":
        text += f". {_LEARNT}"
    return Result(text=text, data={"id": note.id})


async def _edit(call: Call, number: str) -> Result:
    """In the words of whose line it is; what others share stays in mine."""
    if not call.services.authorization.may(call.user, Grant.RATE):
        raise UsageError("only who may rate changes the words of a line")
    text = note_rules.one_line(" ".join(call.args[2:]), call.services.notes.marks)
    if not text:
        raise UsageError("there was nothing in it: say in a few words how I should answer")

    async def operation(db: aiosqlite.Connection) -> Note:
        note = await _named(db, call, number)
        if note.scope != "person":
            raise UsageError(f"others share line {note.id}: switch it off, or delete it")
        await lines.edit(db, note, text)
        await distilled.keep(db, note.id)  # what was learnt is the line that it was
        return note

    note = await call.services.store.write(operation)
    return Result(text=f"I keep this in mind now: “{text}”", data={"id": note.id, "text": text})


async def _move(call: Call, number: str, where: str) -> Result:
    """To everybody's lines, or back. Only the wording of a chip goes to others: nobody's own words do."""
    if not _owns(call):
        raise UsageError(_NO_OWNER)
    scope, key = EVERYBODY if where == "everybody" else ("person", person(call.user))

    async def operation(db: aiosqlite.Connection) -> Note:
        note = await _named(db, call, number)
        if not note.rule:
            raise UsageError("only a line that a button has made holds for others: this one is in your words")
        await lines.move(db, note, scope, key)
        await distilled.keep(db, note.id)  # it was tried on one person's questions
        return note

    note = await call.services.store.write(operation)
    await audit(call, "notes", {"done": True})
    return Result(text=f"This holds {_FOR[scope]} now: “{note.text}”", data={"id": note.id})
