# SPDX-License-Identifier: Apache-2.0
"""What a child tells of an error that nobody foresaw: where, which, and its message without people's words.

A library may have put a prompt into its message. So a word of it that somebody has said here is left out,
and where it is not known what was said, every word that errors do not usually have.
"""

from __future__ import annotations

import re
import sys
import threading
import traceback
from collections.abc import Iterable, Mapping
from typing import Any, cast

from goodbot.base.errors import GoodbotError

_LEFT_OUT = "…"
_LONGEST = 20_000
"""Characters of a trace; its end says most."""
_MESSAGE = 1000
_USUAL = """
a about above after all allowed already an and any are argument arguments array as at attribute
axis batch be before below between bool both bytes but by call called can cannot class config
could count cpu cuda data deprecated device dict did dim dimension dimensions do does dtype each
element elements empty error errors exceeds except exists expected extra fail failed file first
float float16 float32 for found from function get given got has have head heads if implemented in
incompatible index indices input int int32 int64 into invalid is it its key keys kernel last layer
layers length less list loaded long low match matrix max maximum memory method min missing model
module more most must name names neither no none nor not null number object of on one only op
operation or order out output parameter parameters path position range rank read received require
required requires row rows same scalar self set shape shapes should size sizes state step str
stride strides string sum supported take tensor tensors than that the their there these this to
token tokens too tuple two type types unable undefined unexpected unknown unsupported use used
value values vector vocabulary was weight weights were when which while will with without write
written zero
"""
_COMMON = frozenset(_USUAL.split())
_WORD = re.compile(r"[^\W_]+")
_NUMBERS = re.compile(r"\d[\d\s,]{20,}\d")
"""So many in a row may be a text as token ids."""
_QUOTED = re.compile(r"(['\"])[^'\"]{0,500}\s[^'\"]{0,500}\1")
_heard: set[str] = set()
_knows = False


def heard(said: Any) -> Any:
    """What a daemon has sent, as it is; none of the words in it will be told, however deep they lie."""
    global _knows
    _knows = True
    for text in _texts(said):
        _heard.update(word.casefold() for word in _WORD.findall(text))
    return said


def told(error: BaseException) -> dict[str, str]:
    """What an event says of an error beside its sentence."""
    found = trace(error)
    return {"trace": found} if found else {}


def trace(error: BaseException) -> str:
    """The error and what it came from, with lines of code; empty where its sentence says all."""
    chain: list[BaseException] = []
    one: BaseException | None = error
    while one is not None and one not in chain:
        chain.append(one)
        one = one.__cause__ or (None if one.__suppress_context__ else one.__context__)
    if isinstance(error, GoodbotError) and len(chain) == 1:
        return ""
    told = "".join(
        "".join(traceback.format_tb(one.__traceback__)) + f"{type(one).__name__}: {_message(one)}\n"
        for one in reversed(chain)
    )
    return told[-_LONGEST:].rstrip()


def tell_uncaught() -> None:
    """What ends a thread, or is raised where nobody can catch it, goes to stderr in the same way."""

    def tell(told: Any) -> None:
        if told.exc_value is not None and told.exc_type is not SystemExit:
            sys.stderr.write(f"{trace(told.exc_value) or told.exc_value}\n")

    threading.excepthook = sys.unraisablehook = tell


def _message(error: BaseException) -> str:
    try:
        message = str(error)
    except Exception:  # an error of a library's own, which cannot even say what it is
        return _LEFT_OUT
    if isinstance(error, GoodbotError):
        return message  # a sentence of ours: it holds no words of theirs
    message = _QUOTED.sub(rf"\1{_LEFT_OUT}\1", message[:_MESSAGE])
    return _WORD.sub(_fit, _NUMBERS.sub(_LEFT_OUT, message))


def _fit(found: re.Match[str]) -> str:
    word = found[0]
    if word.isascii() and (len(word) < 3 or (word.isdecimal() and len(word) < 4)):
        return word
    said = not _knows or word.casefold() in _heard or not word.isascii()
    return _LEFT_OUT if said and word.casefold() not in _COMMON else word


def _texts(said: object) -> Iterable[str]:
    if isinstance(said, str):
        yield said
    elif isinstance(said, Mapping):
        for value in cast("Mapping[Any, object]", said).values():
            yield from _texts(value)
    elif isinstance(said, list):
        for value in cast("list[object]", said):
            yield from _texts(value)
