# SPDX-License-Identifier: Apache-2.0
"""A key out of a passphrase, which is asked for at the terminal and kept nowhere."""

from __future__ import annotations

import getpass
import hashlib
import sys
import unicodedata
from collections.abc import Callable
from pathlib import Path

from goodbot.base.errors import StoreError, UsageError
from goodbot.base.printing import printable, say
from goodbot.base.worded import Worded

_LEAST = 12
_TRIES = 3
_MEMORY = 1 << 28


def ask(question: str, salt: str, holds: Callable[[bytes], bool], home: Path) -> bytes:
    """The key that the right passphrase makes; asks three times. Raises StoreError."""
    if not _terminal():
        nobody = (
            "the data in {home} are encrypted, and their passphrase is asked for at a terminal, which is not "
            "here. Start goodbot in one, or type `goodbot encrypt --rekey --key file:PATH` there"
        )
        raise StoreError(Worded(nobody, home=home))
    for left in reversed(range(_TRIES)):
        key = _key(_typed(f"{question} "), salt)
        if holds(key):
            return key
        if left:
            say("That is another one. Once more:", file=sys.stderr)
    wrong = "none is the passphrase of the data in {home}: without it nobody can read them"
    raise StoreError(Worded(wrong, home=home))


def new(salt: str) -> bytes:
    """The key of a passphrase that a person chooses now. Raises UsageError."""
    if not _terminal():
        nobody = Worded("a passphrase is asked for at a terminal, which is not here: name another --key")
        raise UsageError(nobody)
    chosen = _typed(f"A new passphrase, at least {_LEAST} characters: ")
    if len(chosen) < _LEAST:
        short = Worded("that passphrase is too short: take at least {count} characters", count=_LEAST)
        raise UsageError(short)
    if _typed("The same once more: ") != chosen:
        raise UsageError(Worded("the two are not the same: nothing was changed"))
    return _key(chosen, salt)


def _typed(question: str) -> str:
    try:
        return getpass.getpass(printable(question), sys.stderr)
    except EOFError:
        raise UsageError(Worded("no passphrase was typed: nothing was changed")) from None


def _terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()  # a closed one is None


def _key(text: str, salt: str) -> bytes:
    """It takes a good part of a second and much memory, so that guessing does, too.

    An ä is one character or two, as keyboards and systems like it: here it is always one.
    """
    typed = unicodedata.normalize("NFC", text).encode()
    return hashlib.scrypt(typed, salt=bytes.fromhex(salt), n=1 << 17, r=8, p=1, maxmem=_MEMORY, dklen=32)
