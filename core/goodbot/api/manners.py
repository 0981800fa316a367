# SPDX-License-Identifier: Apache-2.0
"""What a model server refuses, learnt from what it says, and how it is asked from then on.

Some templates refuse the system role, or two messages of one role behind each other; some servers refuse
`max_tokens`, `seed` or a filter. Each is left out or said in another way once the server has refused it, for
as long as its driver lives, and its owner is told.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, cast

from goodbot.api.completions import with_tools, without_form, without_tools
from goodbot.api.events import Message
from goodbot.api.plain import plainer, system_first, without_system
from goodbot.base.sampling import UNFILTERED, Filters
from goodbot.base.worded import Worded

FORMS: Mapping[str, Callable[[Sequence[Message]], list[Message]]] = {
    "system_first": system_first,
    "without_system": without_system,
    "plainer": plainer,
}
"""Ways to say a conversation, each plainer than the one before."""
_TOLD = {
    "system_first": Worded("system messages in the middle (all of them go first)"),
    "without_system": Worded("system messages (their words go with the first question)"),
    "plainer": Worded("this order of roles (one user's and one assistant's message in turn)"),
}
REFUSALS = (400, 422, 500, 501)
"""Statuses of those who do not take a request as it is."""
_ROLES = re.compile(r"\brole|\bsystem[ _]?(message|prompt|instruction)|alternat|\bdeveloper\b", re.ASCII)
_REFUSES = re.compile(
    r"support|not permitted|not allowed|unknown|unrecogni|unexpected|extra|forbidden|must|only|invalid|"
    r"not available|not enabled|deprecated|disallow|does not|doesn't|cannot|can't|expected|instead|alternat|"
    r"should be|isn't|is not",
    re.ASCII,
)
_TOO_MANY = re.compile(
    r"context|too (large|long|many|big|high|low|small)|at (most|least)|less than|greater|exceed|maximum|"
    r"minimum|above|below|out of range|between",
    re.ASCII,
)
"""Said of a value, not of the field: without it the answer would be another than was asked for."""
_TOKENS, _NEWER = "max_tokens", "max_completion_tokens"
_SPARE = (
    "seed",
    "top_p",
    "top_k",
    "min_p",
    "repetition_penalty",
    "temperature",
    "stream_options",
    "chat_template_kwargs",
    "cache_salt",
    "parallel_tool_calls",
    "frequency_penalty",
    "presence_penalty",
    "logit_bias",
    "stop",
    "reasoning_effort",
)
"""What an answer can be had without."""
_LONGEST_WORDS = 300
_OWN_TEMPERATURE = 1.0
"""That of OpenAI's API where a request names none."""


@dataclass
class Manners:
    """One server's; and a copy is what one request was asked with."""

    form: str = ""
    """In which of `FORMS` it wants a conversation; empty: as it is."""
    _renamed: bool = False
    """`max_tokens` goes by its newer name."""
    _older: bool = False
    _dropped: tuple[str, ...] = ()
    refused: str = ""
    """What it said of our last request, if nothing could be done about it."""

    @property
    def temperature(self) -> float | None:
        """The one of an answer, where that is not the one that was asked for."""
        return _OWN_TEMPERATURE if "temperature" in self._dropped else None

    def fitted(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """A request of chat completions as this server takes it."""
        made = {name: value for name, value in body.items() if name not in self._dropped}
        if self.form and isinstance(made.get("messages"), list):
            made["messages"] = FORMS[self.form](made["messages"])
        old, new = (_TOKENS, _NEWER) if self._renamed else (_NEWER, _TOKENS)
        if (self._renamed or self._older) and old in made:
            made[new] = made.pop(old)
        return made

    def left(self, filters: Filters) -> Filters:
        """What of the filters reaches the server."""
        gone = {name: getattr(UNFILTERED, name) for name in filters.told() if name in self._dropped}
        return replace(filters, **gone) if gone else filters

    def learn(self, status: int, words: str, body: Mapping[str, Any]) -> bool:
        """Learn from a server's refusal of what `fitted` makes of a request.

        Args:
            status: The HTTP status of the refusal.
            words: What the server said.
            body: The request, as it was before `fitted`.

        Returns:
            Whether to ask once more.
        """
        low, sent = words.lower(), self.fitted(body)
        if status not in REFUSALS or not _REFUSES.search(low):
            return False
        if named := next((name for name in _named(low) if name in sent), ""):
            return self._leave_out(named)
        if "messages" not in body or not _ROLES.search(low):
            return False
        forms = list(FORMS)
        for form in forms[forms.index(self.form) + 1 if self.form else 0 :]:
            if FORMS[form](body["messages"]) != sent["messages"]:
                self.form = form
                return True
        return False

    def _leave_out(self, name: str) -> bool:
        if name == _TOKENS and not self._older:
            self._renamed = True
        elif name == _NEWER and not self._renamed:
            self._older = True
        elif name in _SPARE:
            self._dropped += (name,)
        else:
            return False
        return True

    def take(self, learnt: Manners, but: Collection[str]) -> None:
        """What helped one request is kept for the next ones, `but` for what was said of these fields."""
        forms = ("", *FORMS)
        self.form = max(self.form, learnt.form, key=forms.index)
        if not {_TOKENS, _NEWER}.intersection(but):
            self._renamed |= learnt._renamed
            self._older |= learnt._older
        known = {*self._dropped, *but}
        self._dropped += tuple(name for name in learnt._dropped if name not in known)

    def told(self) -> str:
        """For its owner: what it refuses, and what becomes of it; empty for nothing."""
        parts: list[str] = [_TOLD[self.form]] if self.form else []
        gets = "{name} (it gets {other})"
        parts += [Worded(gets, name=_TOKENS, other=_NEWER)] if self._renamed else []
        parts += [Worded(gets, name=_NEWER, other=_TOKENS)] if self._older else []
        parts += [Worded("{name} (left out)", name=name) for name in self._dropped]
        if self.refused:
            parts.append(Worded("what it was asked last: {why}", why=self.refused))
        if not parts:
            return ""
        return Worded("the server refuses: {what}", what=reduce(_and, parts))


class Attempt:
    """One request, asked anew for as long as something of it can be said in another way::

        while True:
            try:
                ask(attempt.sent)
            except StatusError as error:
                if not attempt.again(error.reply.status, error.reply.words):
                    raise
            else:
                attempt.taken()

    Nothing is learnt for others before the server takes it, so what does not help is never kept.
    """

    def __init__(self, manners: Manners, body: Mapping[str, Any], theirs: Collection[str] = ()) -> None:
        """Begin one request.

        Args:
            manners: What is known of the server; other requests share it.
            body: The request, as OpenAI's API takes it.
            theirs: Fields whose values a program has chosen; they say nothing of other requests.
        """
        self._shared, self._body, self._theirs = manners, body, theirs
        self.manners = replace(manners)
        """How this one is asked, whatever others learn meanwhile."""

    @property
    def sent(self) -> dict[str, Any]:
        """The request as the server gets it."""
        return self.manners.fitted(self._body)

    def taken(self) -> None:
        """The server answers it."""
        self._shared.take(self.manners, self._theirs)
        self._shared.refused = ""

    def again(self, status: int, words: str) -> bool:
        """After an error: whether to ask once more, with what `sent` is now."""
        if self.manners.learn(status, words, self._body):
            return True
        if status in REFUSALS and not self._theirs:
            self._shared.refused = words
        return False


def _named(low: str) -> list[str]:
    """The fields that a refusal names, the newer name of a pair only where the older is not refused."""
    found = [name for name in (_TOKENS, _NEWER, *_SPARE) if re.search(rf"\b{name}\b", low)]
    return [] if _TOO_MANY.search(low) else found


def formed(messages: Sequence[Message]) -> list[Message]:
    """A stored prompt as it was really sent."""
    plain, form = without_form(messages)
    if form not in FORMS:
        return plain
    words, tools = without_tools(plain)
    return with_tools(FORMS[form](words), tools)


def refusal(data: bytes) -> str:
    """The words of an error's body."""
    return said(parsed(data.decode("utf-8", "replace")))


def _and(one: str, other: str) -> str:
    return Worded("{one}; {other}", one=one, other=other)


def said(body: Mapping[str, Any]) -> str:
    """The words of an error object, in the shapes that servers give it; may be empty."""
    error: object = (
        body.get("error") or body.get("detail") or body.get("message") or body.get("error_message")
    )
    if isinstance(error, Mapping):
        told = cast("Mapping[str, Any]", error)
        error = told.get("message") or told.get("detail")
    if isinstance(error, list):  # one for each field that is not taken (FastAPI)
        error = "; ".join(filter(None, map(_field, cast("list[object]", error)))) or None
    return short(error) if isinstance(error, str) else ""


def _field(error: object) -> str:
    """Which field, and what is wrong with it; not what stood in it, which may be what people wrote."""
    if not isinstance(error, Mapping):
        return ""
    told = cast("Mapping[str, Any]", error)
    where = cast("list[object]", told.get("loc") if isinstance(told.get("loc"), list) else [])
    names = ".".join(str(part) for part in where if part != "body")
    words = told.get("msg") or told.get("message")
    return ": ".join(part for part in (names, words) if isinstance(part, str) and part)


def short(text: str) -> str:
    """Foreign words in one printable line."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text[:2000]).split())
    return line if len(line) <= _LONGEST_WORDS else line[: _LONGEST_WORDS - 1] + "…"


def parsed(text: str) -> dict[str, Any]:
    """The object that an answer's text holds; `{}` for none."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    if isinstance(found, list) and found:  # some give a list of one error
        found = cast("list[object]", found)[0]
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}
