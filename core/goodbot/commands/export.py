# SPDX-License-Identifier: Apache-2.0
"""export: the rated answers as a file on the bot's own machine. Nothing of it goes into a chat."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from goodbot import __version__
from goodbot.api.export import ExportedAnswer, ExportForm
from goodbot.base.encrypted import ENDING
from goodbot.base.errors import GoodbotError, UsageError
from goodbot.base.suggest import TERMINAL
from goodbot.base.worded import Worded
from goodbot.commands.base import Call, Result
from goodbot.commands.masking import Masker
from goodbot.commands.services import Services
from goodbot.commands.snapshot import Snapshot
from goodbot.store import exporting, selection
from goodbot.store.selection import Selection

logger = logging.getLogger(__name__)

OWN = ExportForm(
    name="jsonl", summary="all that goodbot knows; `import` reads it", lines=lambda one: (one.record,)
)
"""The form that nothing is lost in."""
_FIELDS = ("since", "until", "place", "person", "rating", "version", "topic", "text")
_WORDS = ("place", "person", "topic", "text")
_QUOTES = {'"': '"', "'": "'", "“": "”", "„": "“", "«": "»"}
_REVEAL = "`goodbot decrypt exports/{} --out FILE` there"
_PAGE = 100
"""Answers that are read at once: an agent's may have megabytes."""


async def export(call: Call) -> Result:
    """Of the answers that are meant, one object or more a line, oldest first; see `goodbot.api.export`."""
    s = call.services
    said = _said(call.args)
    form = _form(s, said.get("format", OWN.name))
    if "person" in said:
        said["person"] = _person(call, said["person"])
    wanted = _selection(said)
    stem = datetime.fromtimestamp(s.clock.now(), UTC).strftime("%Y%m%d-%H%M%S")
    ending = "" if form is OWN else f"{form.name}."
    async with s.eraser.copying:
        path = exporting.free(s.config.home, stem, f"{ending}{'json' if form.array else 'jsonl'}")
        try:
            snapshot = await asyncio.to_thread(Snapshot, path, form)
            sha256 = await _write(s, snapshot, wanted, said)
        except OSError as error:
            none = Worded("nothing was exported: {why}", why=error.strerror or str(error))
            raise GoodbotError(none) from error
    count = f"{snapshot.answers} rated answer{'' if snapshot.answers == 1 else 's'}"
    if snapshot.lines != snapshot.answers:
        count = f"{snapshot.lines} line{'' if snapshot.lines == 1 else 's'} from {count}"
    sealed = f" It is encrypted: {_REVEAL.format(path.name)} reads it." if path.suffix == ENDING else ""
    left = f" {snapshot.kept_out} more may not teach, and are left out." if snapshot.kept_out else ""
    return Result(
        text=f"{count}: {exporting.EXPORTS}/{path.name} in goodbot's directory on its machine.{sealed}{left}",
        data={
            "answers": snapshot.answers,
            "path": str(path),
            "format": form.name,
            "lines": snapshot.lines,
            "left_out": snapshot.kept_out,
            "sha256": sha256,
            "card": str(snapshot.card),
        },
    )


async def _write(s: Services, snapshot: Snapshot, wanted: Selection, said: dict[str, str]) -> str:
    """All of it as it was at one moment; other readers and writers go on meanwhile."""
    try:
        async with s.store.moment() as db:
            known = await exporting.identities(db) if "redact" in said else None
            masker = await asyncio.to_thread(Masker, known) if known else None
            ids = await selection.chosen(db, wanted)
            for start in range(0, len(ids), _PAGE):
                answers = await exporting.answers(db, ids[start : start + _PAGE], s.pool)
                await asyncio.to_thread(_add, snapshot, answers, masker)
        hidden = _WORDS if masker else ()  # what is typed there may be what is masked in the file
        meant = ", ".join(f"{n} {'***' if n in hidden else said[n]}" for n in _FIELDS if n in said)
        about = {
            "selected": meant or "everything",
            "redacted": "yes: people and places are numbers, keys are masked" if masker else "no",
            "made": f"{datetime.fromtimestamp(s.clock.now(), UTC):%Y-%m-%d %H:%M} UTC, goodbot {__version__}",
        }
        return await asyncio.to_thread(snapshot.finish, about)
    except BaseException:
        snapshot.drop()
        raise


def _add(snapshot: Snapshot, answers: Sequence[ExportedAnswer], masker: Masker | None) -> None:
    try:
        snapshot.add([masker.mask(one) for one in answers] if masker else answers)
    except (OSError, MemoryError):
        raise
    except Exception as error:  # a plugin's
        logger.exception("a form has failed")
        failed = Worded("nothing was exported: the form {name} has failed", name=snapshot.form.name)
        raise GoodbotError(failed) from error


def _said(args: Sequence[str]) -> dict[str, str]:
    """What is behind each option: a value goes on to the next one. Raises UsageError."""
    said: dict[str, str] = {}
    name = ""
    for word in args:
        typed = word.replace("—", "--")  # as some keyboards have it
        if typed.startswith("--"):
            name = typed[2:]
            if name not in (*_FIELDS, "format", "redact") or name in said:
                raise UsageError(Worded("{word} is no option of `export`, or stands there twice", word=word))
            said[name] = ""
        elif name in ("", "redact"):
            other = "“{word}” is no option of `export`: type `export --text {word}`, for example"
            raise UsageError(Worded(other, word=word))
        else:
            said[name] = f"{said[name]} {word}".strip()
    for option, value in said.items():
        if len(value) > 2 and _QUOTES.get(value[0]) == value[-1]:
            said[option] = value[1:-1]  # a chat leaves them where a shell takes them away
    if empty := [one for one in said if not said[one] and one != "redact"]:
        raise UsageError(Worded("say something behind --{name}", name=empty[0]))
    return said


def _form(s: Services, name: str) -> ExportForm:
    forms = {OWN.name: OWN} | s.plugins.export_forms()
    if name not in forms:
        none = "there is no form {name}: say one of {choice}"
        raise UsageError(Worded(none, name=repr(name), choice=", ".join(sorted(forms))))
    return forms[name]


def _person(call: Call, word: str) -> str:
    """`connector:id`; an id alone is one of the platform where it is said. Raises UsageError."""
    if ":" in word:
        return word  # also of a platform that is not connected any more
    if call.user.connector == TERMINAL:
        raise UsageError(Worded("say who with --person, as slack:U0AMY: `people` lists them"))
    return f"{call.user.connector}:{word}"


def _selection(said: dict[str, str]) -> Selection:
    """Raises UsageError."""
    fields: dict[str, Any] = {name: said[name] for name in _WORDS if name in said}
    for name in ("since", "until"):
        if name in said:
            fields[name] = _time(said[name])
    if (rating := said.get("rating")) is not None:
        if rating not in selection.RATINGS:
            choice = ", ".join(selection.RATINGS)
            raise UsageError(Worded("--rating is one of {choice}", choice=choice))
        fields["rating"] = rating
    if (version := said.get("version")) is not None:
        fields["version"] = version_in(version)
    return Selection(**fields)


def _time(text: str) -> float:
    """Seconds since the epoch; without a zone in the machine's own."""
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError, OSError):
        none = Worded("{text} is no day: say 2026-11-21, or 2026-11-21T18:30", text=repr(text))
        raise UsageError(none) from None


def version_in(text: str) -> int:
    """A version as it is typed. Raises UsageError."""
    known = {"base": 0, "others": selection.OTHERS}
    number = text.removeprefix("v")
    if text not in known and not (number.isascii() and number.isdigit() and len(number) < 10):
        number_ = "a version is a number from `adapters`, `base`, or `others` for other models"
        raise UsageError(Worded(number_))
    return known.get(text, int(number) if number.isdigit() else 0)
