# SPDX-License-Identifier: Apache-2.0
"""notes (list, on, off, delete, edit, move): the lines that answers to a person follow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace

import aiosqlite

from goodbot.access.authorization import person
from goodbot.api.commands import Grant
from goodbot.api.events import ChannelKind, ChannelRef, CommandEvent, OrderKey, UserRef
from goodbot.api.texts import commas, ended, explained, joined, quoted, say
from goodbot.api.turns import OwnNote
from goodbot.commands.audit import audit
from goodbot.commands.base import Call, Result, wrong
from goodbot.commands.services import Services
from goodbot.conversation import note_rules
from goodbot.store import channels, distilled
from goodbot.store import notes as lines
from goodbot.store.notes import EVERYBODY, Note


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
            raise wrong(call.event, "wrong_notes")


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
            used=note.used and not note.refuted,
            edited=note.edited,
            ratings=len(note.ratings),
            shared=note.scope != "person",
            learnt=note.retired and not note.refuted,
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
    language = call.user.language
    said = [_line(note, language) for note in shown]
    if not (shown and kept):
        said.append(say("notes_none" if kept else "notes_off", language))
    return Result(text="\n".join(said), data={"notes": [asdict(note) for note in shown]})


def _line(note: Note, language: str) -> str:
    from_ratings = say("note_ratings", language, count=len(note.ratings))
    origin = say("note_own_words", language) if note.edited else from_ratings
    whom = "" if note.scope == "person" else say(f"note_for_{note.scope}", language)
    retired = "note_is_refuted" if note.refuted else "note_is_learnt" if note.retired else ""
    key = retired if note.used else "note_is_off"
    state = f"{say(key, language)} " if key else ""
    return f"{note.id}  {state}{quoted(note.text, language)}  {commas(language, origin, whom)}"


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
    raise wrong(call.event, "wrong_note", word=repr(number[:20]))


async def _switch(call: Call, used: bool) -> Result:
    """Whether answers in a shared channel follow any."""
    channel = call.event.channel
    if channel.kind is not ChannelKind.SHARED:
        raise wrong(call.event, "wrong_notes_here", word="on" if used else "off")
    if not _owns(call):
        raise wrong(call.event, "wrong_notes_owner")
    follows = await call.services.store.read(call.services.notes.follows)
    if used and not follows:
        raise wrong(call.event, "wrong_notes_never")
    if not await call.services.store.write(lambda db: channels.set_notes(db, channel, used)):
        raise wrong(call.event, "wrong_notes_off_here")
    await audit(call, "notes", {"done": True})
    return Result(text=say("notes_on_here" if used else "notes_off_here", call.user.language))


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
    language = call.user.language
    told = explained(say(f"note_{action}", language), quoted(note.text, language), language)
    if taught and action != "on":
        told = joined(language, ended(told, language), say("note_learnt", language))
    return Result(text=told, data={"id": note.id})


async def _edit(call: Call, number: str) -> Result:
    """In the words of whose line it is; what others share stays in mine."""
    if not call.services.authorization.may(call.user, Grant.RATE):
        raise wrong(call.event, "wrong_note_rater")
    text = note_rules.one_line(" ".join(call.args[2:]), call.services.notes.marks)
    if not text:
        raise wrong(call.event, "wrong_note_empty")

    async def operation(db: aiosqlite.Connection) -> Note:
        note = await _named(db, call, number)
        if note.scope != "person":
            raise wrong(call.event, "wrong_note_shared", number=note.id)
        await lines.edit(db, note, text)
        await distilled.keep(db, note.id)  # what was learnt is the line that it was
        return note

    note = await call.services.store.write(operation)
    language = call.user.language
    told = explained(say("note_edited", language), quoted(text, language), language)
    return Result(text=told, data={"id": note.id, "text": text})


async def _move(call: Call, number: str, where: str) -> Result:
    """To everybody's lines, or back. Only the wording of a chip goes to others: nobody's own words do."""
    if not _owns(call):
        raise wrong(call.event, "wrong_notes_owner")
    scope, key = EVERYBODY if where == "everybody" else ("person", person(call.user))

    async def operation(db: aiosqlite.Connection) -> Note:
        note = await _named(db, call, number)
        if not note.rule:
            raise wrong(call.event, "wrong_note_words")
        await lines.move(db, note, scope, key)
        await distilled.keep(db, note.id)  # it was tried on one person's questions
        return note

    note = await call.services.store.write(operation)
    await audit(call, "notes", {"done": True})
    language = call.user.language
    told = explained(say(f"note_moved_{scope}", language), quoted(note.text, language), language)
    return Result(text=told, data={"id": note.id})
