# SPDX-License-Identifier: Apache-2.0
"""Which of the rated answers are meant: by when, where, who, what they were rated, and words."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import aiosqlite

from goodbot.api.turns import CHOICE
from goodbot.store import codec, comparisons, people, rollback_window
from goodbot.store.prompts import QUESTION
from goodbot.store.query import fetch

RATINGS = ("good", "bad", "tie", "none")
OTHERS = -1
"""In the place of a version: whatever is no version of ours."""

_WROTE = f"e.kind IN ('comment', 'better') AND {rollback_window.STANDS}"
_SAID = f"SELECT 1 FROM events e WHERE e.turn = t.id AND {_WROTE}"  # noqa: S608
_MEAN = "(SELECT avg(value) FROM labels WHERE turn = t.id)"
_LEFT_OUT_MEAN = (
    "(SELECT avg(value) FROM events WHERE seq IN (SELECT max(e.seq) FROM events e WHERE e.turn = t.id"  # noqa: S608
    f" AND e.kind = 'rate' AND {rollback_window.LEFT_OUT}"
    f" GROUP BY {people.IDENTITY_OF.format('e.rater')}))"
)
_PERSON = (
    "(t.connector || ':' || t.talker IN (SELECT value FROM json_each(:person))"
    " OR EXISTS (SELECT 1 FROM labels l WHERE l.turn = t.id"
    "  AND l.rater IN (SELECT value FROM json_each(:person)))"
    " OR EXISTS (SELECT 1 FROM events e WHERE e.turn = t.id AND ({0})"
    "  AND e.rater IN (SELECT value FROM json_each(:person))))"
)
_RATING = (
    "coalesce(CASE sign({0}) WHEN 1 THEN 'good' WHEN -1 THEN 'bad' WHEN 0 THEN 'tie' END, 'none') = :rating"
)
_TERMS = {
    "since": "t.created_at >= :since",
    "until": "t.created_at < :until",
    "place": ":place IN (t.connector, t.connector || ':' || t.channel)",
    "person": _PERSON.format(_WROTE),
    "rating": _RATING.format(_MEAN),
    "version": f"iif(t.answered_by = '', t.version, {OTHERS}) = :version",
    "topic": f"holds_word({QUESTION}, :topic)",
    "turns": "t.id IN (SELECT value FROM json_each(:turns))",
    "text": f"instr(folded({QUESTION} || char(10) || t.response), :text)",
}
_WITH_LEFT_OUT = {
    "person": _PERSON.format(f"{_WROTE} OR {rollback_window.LEFT_OUT}"),
    "rating": _RATING.format(f"coalesce({_MEAN}, {_LEFT_OUT_MEAN})"),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Selection:
    """What an answer has to be; None says nothing."""

    since: float | None = None
    """When it was given, seconds since the epoch."""
    until: float | None = None
    """Before then."""
    place: str | None = None
    """A connector, or one chat of it: `connector:id`."""
    person: str | None = None
    """Who asked, rated or wrote something of it, with all their accounts: `connector:id`."""
    rating: str | None = None
    """One of `RATINGS`, by the mean of the ratings; `none`: something was said or chosen, not rated."""
    version: int | None = None
    """Of ours, or `OTHERS`."""
    topic: str | None = None
    """A word of the question, in small letters."""
    text: str | None = None
    """Words of the question or the answer, in small or capital letters."""
    turns: tuple[str, ...] | None = None
    """One of these."""

    def told(self) -> dict[str, object]:
        """What it says."""
        return {name: said for name in _TERMS if (said := getattr(self, name)) is not None}


async def terms(
    db: aiosqlite.Connection, selection: Selection, *, but: Collection[str] = (), left_out: bool = False
) -> tuple[list[str], dict[str, object]]:
    """SQL of what it says of an answer `t` whose retry, if it is one, is `r`; and the values in it.

    What is `left_out` is looked at, too: by its rating an answer is found that has no other.
    """
    values = {name: said for name, said in selection.told().items() if name not in but}
    terms_of = _TERMS | _WITH_LEFT_OUT if left_out else _TERMS
    found = [terms_of[name] for name in values]
    if selection.person is not None:
        values["person"] = codec.dump_json(await people.accounts(db, selection.person))
    if selection.turns is not None:
        values["turns"] = codec.dump_json(list(selection.turns))
    if selection.text is not None:
        values["text"] = selection.text.casefold()
    if selection.topic is not None:
        values["topic"] = selection.topic.casefold()
    return found, values


async def chosen(db: aiosqlite.Connection, selection: Selection) -> list[str]:
    """The answers that are meant, of those that somebody rated, wrote about or compared; oldest first."""
    said, values = await terms(db, selection)
    rows = await fetch(
        db,
        "SELECT t.id FROM turns t LEFT JOIN retries r ON r.turn = t.id"  # noqa: S608
        f" WHERE t.kind <> '{CHOICE}' AND (t.rated > 0 OR EXISTS ({_SAID})"
        f" OR t.id IN (SELECT turn FROM pairs WHERE {comparisons.CHOSEN}))"
        f"{''.join(f' AND {term}' for term in said)} ORDER BY t.seq",
        values,
    )
    return [id_ for (id_,) in rows]
