# SPDX-License-Identifier: Apache-2.0
"""What a file of another program was before us: its bytes, and a sealed record of what we did.

Both lie in `<home>/connectors/<connector>/before` (0700). The record has a MAC (`goodbot.base.sealed`) and a
hash of the bytes: whoever can put files there, as by a backup of theirs, writes no other program's
settings by that.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from goodbot.base import durable, sealed
from goodbot.base.errors import FatalConnectorError


@dataclass(frozen=True, kw_only=True)
class Record:
    """What we know of a file that we have written."""

    path: str
    existed: bool  # before us
    wrote: str  # SHA-256 of what we wrote last
    before: str  # SHA-256 of what it was; empty where it was not there
    alone: bool = True
    """False once somebody else wrote between two writes of ours: their part must survive."""
    made: tuple[str, ...] = ()  # directories that we made for it, the innermost first


class Before:
    """What is kept of one file. Methods raise FatalConnectorError, those that write OSError."""

    def __init__(self, path: Path, home: Path, connector: str) -> None:
        key = f"{path.name}-{hashlib.sha256(os.fsencode(path)).hexdigest()[:12]}"
        self._path = path
        self._home = home
        self._what = f"{connector} {key}"
        self._folder = home / "connectors" / connector / "before"
        self._bytes = self._folder / f"{key}.before"
        self._note = self._folder / f"{key}.json"

    @property
    def there(self) -> bool:
        """Whether there is a record, believed or not."""
        return self._note.exists()

    def record(self) -> Record | None:
        """Ours; None when there is none."""
        try:
            fields: dict[str, Any] = json.loads(self._note.read_bytes())
            mac = fields.pop("mac", None)
            if not sealed.holds(self._home, self._what, _dumped(fields), mac):
                raise self._not_ours(self._note)
            fields["made"] = tuple(fields["made"])
            return Record(**fields)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise FatalConnectorError(
                f"{self._note} cannot be read: what {self._path} was before is in {self._bytes}."
            ) from error

    def bytes(self, record: Record) -> bytes | None:
        """What the file was; None when it was not there. Raises OSError."""
        if not record.existed:
            return None
        found = self._bytes.read_bytes()
        if digest(found) != record.before:
            raise self._not_ours(self._bytes)
        return found

    def keep(self, record: Record, before: bytes | None) -> None:
        """What it was, then the record: without the record the copy counts for nothing."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if before is not None:
            durable.replace(self._bytes, before)
        fields = asdict(record)
        fields["mac"] = sealed.seal(self._home, self._what, _dumped(fields))
        durable.replace(self._note, json.dumps(fields, indent=1).encode())

    def forget(self) -> None:
        """Keep nothing of it any more."""
        self._note.unlink(missing_ok=True)
        self._bytes.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            self._folder.rmdir()

    def _not_ours(self, kept: Path) -> FatalConnectorError:
        return FatalConnectorError(
            f"{kept} was not made by this goodbot, so {self._path} was left as it is. Take out of it"
            f" what is goodbot's, if there is any, delete {self._folder}, then try again."
        )


def digest(data: bytes) -> str:
    """SHA-256, in hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def _dumped(fields: dict[str, Any]) -> bytes:
    return json.dumps(fields, sort_keys=True).encode()
