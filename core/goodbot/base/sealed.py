# SPDX-License-Identifier: Apache-2.0
"""MACs (HMAC-SHA-256) of records that lead to writes outside the state directory, and of what names people.

What goodbot has changed for other programs is put back by such a record: whoever could forge one would
write other programs' settings through goodbot. The key is in the state directory, where no backup takes
it from and none puts it, and is made when it is first needed. A record without a MAC that holds is not
believed.

Who was refused is known again by a MAC, too: ids of platforms are few enough to be guessed from a hash.
"""

from __future__ import annotations

import hmac
import json
import os
import secrets
import stat
import tempfile
from pathlib import Path

from goodbot.base import durable

KEY = "undo.key"
_BYTES = 32


def seal(home: Path, what: str, data: bytes) -> str:
    """The MAC of a record. `what` says which record it is, so that none passes for another's.

    Raises OSError.
    """
    return _mac(_key(home) or _made(home), what, data)


def holds(home: Path, what: str, data: bytes, mac: object) -> bool:
    """Whether `seal` made this MAC in this state directory. Raises OSError."""
    key = _key(home)
    if key is None or not isinstance(mac, str):
        return False
    return hmac.compare_digest(_mac(key, what, data).encode(), mac.encode(errors="replace"))


def known(home: Path, what: str, data: bytes) -> str:
    """What `seal` gives by the key that is here; empty where there is none. Raises OSError."""
    key = _key(home)
    return "" if key is None else _mac(key, what, data)


def note(home: Path, what: str, text: str) -> str:
    """A sealed record of a text; `told` reads it. Raises OSError."""
    return json.dumps({"text": text, "mac": seal(home, what, _encoded(text))}) + "\n"


def told(home: Path, what: str, kept: str) -> str:
    """The text of a `note`; empty where its MAC does not hold. Raises OSError."""
    try:
        found = json.loads(kept)
        text, mac = str(found["text"]), found["mac"]
    except (ValueError, TypeError, LookupError, RecursionError):
        return ""
    return text if holds(home, what, _encoded(text), mac) else ""


def _encoded(text: str) -> bytes:
    """No two texts alike: a path that is no UTF-8 has surrogates in it."""
    return text.encode(errors="surrogatepass")


def _mac(key: bytes, what: str, data: bytes) -> str:
    name = what.encode()
    return hmac.digest(key, len(name).to_bytes(4) + name + data, "sha256").hex()


def _key(home: Path) -> bytes | None:
    try:
        descriptor = os.open(home / KEY, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        info = os.fstat(descriptor)
        key = file.read(_BYTES + 1) if stat.S_ISREG(info.st_mode) else b""
    if len(key) != _BYTES or info.st_uid != os.geteuid() or info.st_mode & 0o077:
        return None  # not ours: nothing that it has sealed is believed
    return key


def _made(home: Path) -> bytes:
    """A fresh one, in place of what is none of ours; where another is quicker, that one's."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    key = secrets.token_bytes(_BYTES)
    descriptor, partial = tempfile.mkstemp(prefix=f"{KEY}.", suffix=".new", dir=home)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(key)
            durable.flush(file)
        if _key(home) is None:
            (home / KEY).unlink(missing_ok=True)
        try:
            os.link(partial, home / KEY)
        except FileExistsError:
            pass
        except OSError:  # a file system without hard links
            os.replace(partial, home / KEY)
    finally:
        Path(partial).unlink(missing_ok=True)
    return _key(home) or key
