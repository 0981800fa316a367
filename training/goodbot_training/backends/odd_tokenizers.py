# SPDX-License-Identifier: Apache-2.0
"""Tokenizers and templates that their libraries cannot bear: told before these read them, or give up."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, cast

from goodbot.base.errors import GoodbotError, TrainingError
from goodbot.base.worded import Worded

_MOST = 1 << 22
"""Ids. The largest vocabularies have some 260,000; the library counts up to the last id, and writes down each
that is missing: for one of 2**31 that is 8 GB."""
_LARGE = re.compile(rb'"\s*:\s*\d{7}')
"""A name's number of seven digits: few files have any, and only those are taken apart."""
_TOKENIZER, _VOCABULARY = "tokenizer.json", "vocab.json"
"""Where there is none of the first, libraries make a tokenizer of the other."""
_LONGEST = 1 << 20
"""Characters of a chat template: so far `goodbot.api.marks` looks for what it writes."""
_GAVE_UP = "The library of the model's tokenizer gave up on this text."
_datum = partial(TrainingError, kind="data")


def check_ids(directory: Path) -> None:
    """Refuse a tokenizer with ids that no model has. Raises TrainingError."""
    for name in (_TOKENIZER, _VOCABULARY):
        try:
            text = (directory / name).read_bytes()
        except OSError:
            continue  # whoever loads it says what is wrong
        if not _LARGE.search(text):
            return
        try:  # what Python does not read, the library may
            largest = max(map(int, _ids(name, json.loads(text))), default=0)
        except (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError) as error:
            odd = Worded("The numbers in {path} cannot be read.", path=directory / name)
            raise TrainingError(odd) from error
        if largest >= _MOST:
            odd = "The tokenizer in {directory} has the id {number}: no model has so many."
            raise TrainingError(Worded(odd, directory=directory, number=largest))
        return


def check_template(template: object, directory: Path) -> None:
    """Refuse a chat template that would take long to compile. Raises TrainingError."""
    if len(str(template)) > _LONGEST:
        long = "The chat template of the model in {directory} is longer than any that is meant."
        raise TrainingError(Worded(long, directory=directory))


def _ids(name: str, whole: Any) -> Iterator[int]:
    vocabulary: Any = whole["model"]["vocab"] if name == _TOKENIZER else whole
    if isinstance(vocabulary, dict):  # in a list a word's place is its id
        yield from cast("dict[str, int]", vocabulary).values()
    if name == _TOKENIZER:
        yield from (token["id"] for token in whole.get("added_tokens") or ())


@contextmanager
def calm(instead: Callable[[str], GoodbotError] = _datum) -> Generator[None]:
    """Raise an error of ours where the library panics, as it does on patterns that try too much.

    Its own is none that programs catch: it would end the child, and with it everybody's answers.
    """
    try:
        yield
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise instead(_GAVE_UP) from error
