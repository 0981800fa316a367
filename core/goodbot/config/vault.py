# SPDX-License-Identifier: Apache-2.0
"""Which key a state directory is encrypted with, and where that key is: keyring, file, or somebody's head.

`encryption.json` in the directory says by which mark the key is known, and what is being changed; the key
itself is never there, in the config, in the environment or in a log.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import os
import stat
from collections.abc import Generator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

from goodbot import config
from goodbot.base import cage, durable
from goodbot.base.encrypted import KeyMark
from goodbot.base.errors import ConfigError, StoreError, UsageError
from goodbot.base.worded import Worded, said_by
from goodbot.config import secrets
from goodbot.config.sections import EncryptionConfig

FILE = "encryption.json"
Doing = Literal["", "encrypt", "decrypt", "rekey"]
_BYTES = 32
_NO_SALT = "00" * 16
_HEAD = "# Keys of goodbot. Who has one reads all that was encrypted with it."
_COPY = Worded('set [encryption] key = "file:PATH" with the copy that you have saved')
_NOBODY = Worded("without the key nobody can read them")


@dataclass(frozen=True, kw_only=True, slots=True)
class VaultRecord:
    """What `encryption.json` says. `doing`: what is under way, or was when it was killed."""

    key: KeyMark
    place: str
    """Where the key is, or with `rekey` where the next one is, while `doing` something."""
    doing: Doing = ""
    next: KeyMark | None = None
    before: str = ""
    """With `rekey`: where the key so far is."""


class Vault:
    """The key of one state directory."""

    def __init__(self, home: Path, settings: EncryptionConfig) -> None:
        self.home, self.settings = home, settings

    def record(self) -> VaultRecord | None:
        """What is encrypted here, None if nothing is. Raises StoreError."""
        path = self.home / FILE
        try:
            found: Any = json.loads(path.read_bytes())
            following = found["next"]
            if found["doing"] not in get_args(Doing):
                raise ValueError("it says of no change that this goodbot knows")
            return VaultRecord(
                key=_mark(found["key"]),
                place=str(found["place"]),
                doing=found["doing"],
                next=_mark(following) if following else None,
                before=str(found["before"]),
            )
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, LookupError) as error:
            wrong = Worded(
                "{path} cannot be read: bring it back from a copy ({why})", path=path, why=str(error)
            )
            raise StoreError(wrong) from error

    def write(self, record: VaultRecord | None) -> None:
        """Replace it in one step; None: nothing is encrypted any more. Raises OSError."""
        path = self.home / FILE
        if record is None:
            path.unlink(missing_ok=True)
        else:
            durable.replace(path, (json.dumps({"format": 1, **asdict(record)}) + "\n").encode())
        durable.sync(self.home)

    def key(self, mark: KeyMark, place: str = "", *, asked: str = "") -> bytes:
        """The key with this mark, from `place` (by default where the config says).

        `asked`: the question, where there is more than one passphrase. Raises StoreError: what to do.
        """
        if (known := _known.get(mark.id)) is None:
            cage.no_core_dump()  # the key and people's words would be in it, in clear
            known = _known[mark.id] = self._found(mark, place or self.settings.key, asked)
        return known

    def _found(self, mark: KeyMark, place: str, asked: str) -> bytes:
        kind, _, file = place.partition(":")
        if kind == "prompt":
            from goodbot.config import passphrase  # seldom needed, and slow to import

            question = asked or f"The passphrase of {self.home}:"
            return passphrase.ask(question, mark.salt, lambda key: mark_of(key).id == mark.id, self.home)
        if kind == "file":
            return _in_file(Path(file).expanduser(), mark, self.home)
        try:
            text = secrets.from_keyring(_entry(mark))
        except ConfigError as error:
            wrong = "the data in {home} are encrypted, and {why}; or {copy}"
            raise StoreError(Worded(wrong, home=self.home, why=said_by(error), copy=_COPY)) from error
        key = _bytes(text)
        if key is None or mark_of(key).id != mark.id:
            lost = "the data in {home} are encrypted, and the keyring has no key {id}: {copy}; {nobody}"
            raise StoreError(Worded(lost, home=self.home, id=mark.id, copy=_COPY, nobody=_NOBODY))
        return key

    def fresh(self, place: str) -> KeyMark:
        """Make a key and keep it there. Raises ConfigError, StoreError, OSError; then nothing is kept."""
        kind, _, file = place.partition(":")
        salt, key = _NO_SALT, os.urandom(_BYTES)
        if kind == "prompt":
            from goodbot.config import passphrase

            salt = os.urandom(16).hex()
            key = passphrase.new(salt)
        mark = replace(mark_of(key), salt=salt)
        if kind == "file":
            save(Path(file).expanduser(), key, self.home)
            _in_file(Path(file).expanduser(), mark, self.home)  # as the next start does: on FAT it cannot
        elif kind == "keyring":
            secrets.to_keyring(_entry(mark), key.hex())
        _known[mark.id] = key
        return mark


_known: dict[str, bytes] = {}
"""Keys that this process has found already, by their id."""
_lent: dict[Path, Vault] = {}


def register(home: Path, settings: EncryptionConfig) -> Vault:
    """What was read of the config of a state directory, or was changed in it, holds for all files in it."""
    config.encryptions[home.absolute()] = settings
    return Vault(home, settings)


def of(path: Path) -> Vault | None:
    """The vault of the state directory, or of the directory `lent` one, in which a file lies.

    Of a state directory whose config nobody has read, none is known.
    """
    for up in path.absolute().parents:
        if up in _lent:
            return _lent[up]
        if up in config.encryptions:
            return Vault(up, config.encryptions[up])
    return None


@contextlib.contextmanager
def lent(directory: Path, vault: Vault | None) -> Generator[None]:
    """Files in this directory have that key for as long as the block lasts."""
    place = directory.absolute()
    if vault is not None:
        _lent[place] = vault
    try:
        yield
    finally:
        _lent.pop(place, None)


def placed(text: str) -> str:
    """Where a key is, as the config has it: with a whole path. Raises UsageError."""
    kind, colon, file = text.partition(":")
    if kind == "file" and file:
        return f"file:{Path(file).expanduser().absolute()}"
    if colon or kind not in ("", "keyring", "prompt"):
        raise UsageError(Worded("--key is keyring, prompt, or file:PATH"))
    return kind


def mark_of(key: bytes) -> KeyMark:
    """By which a key is known again."""
    return KeyMark(hmac.digest(key, b"goodbot: which key", "sha256")[:8].hex(), _NO_SALT)


def database_key(key: bytes) -> bytes:
    """What the database is encrypted with; files have keys of their own."""
    return hmac.digest(key, b"goodbot: database", "sha256")


def save(path: Path, key: bytes, home: Path) -> None:
    """Add a key to a file that only we can read. Raises ConfigError, OSError."""
    if path.absolute().is_relative_to(home.absolute()):
        inside = "{path} lies beside what the key locks: name a file outside of {home}"
        raise ConfigError(Worded(inside, path=path, home=home))
    if not path.parent.is_dir():
        raise ConfigError(Worded("{path} is no directory", path=path.parent))
    before = _text(path) if path.exists() else ""
    if key.hex() not in before.split():
        durable.replace(path, f"{before.rstrip() or _HEAD}\n{key.hex()}\n".encode("ascii"))
        durable.sync(path.parent)


def keys_in(path: Path) -> list[bytes]:
    """The keys in a file. Raises ConfigError, OSError."""
    return [key for line in _text(path).splitlines() if (key := _bytes(line)) is not None]


def _entry(mark: KeyMark) -> str:
    return f"GOODBOT_KEY_{mark.id}"


def _mark(found: Mapping[str, Any]) -> KeyMark:
    """Raises what a wrong one raises."""
    key, salt = bytes.fromhex(found["id"]), bytes.fromhex(found["salt"])
    if len(key) != 8 or len(salt) != 16:
        raise ValueError("a mark has another length")
    return KeyMark(key.hex(), salt.hex())


def _bytes(text: str) -> bytes | None:
    try:
        key = bytes.fromhex(text.strip())
    except ValueError:
        return None
    return key if len(key) == _BYTES else None


def _in_file(path: Path, mark: KeyMark, home: Path) -> bytes:
    if not path.exists():
        gone = (
            "the data in {home} are encrypted, and their key file {path} is not there: bring it back from a "
            "copy; {nobody}"
        )
        raise StoreError(Worded(gone, home=home, path=path, nobody=_NOBODY))
    try:
        keys = keys_in(path)
    except (OSError, ConfigError) as error:
        wrong = Worded("the key file {path} cannot be used: {why}", path=path, why=said_by(error))
        raise StoreError(wrong) from error
    for key in keys:
        if mark_of(key).id == mark.id:
            return key
    other = (
        "the data in {home} are encrypted with the key {id}, which is not in {path}: name the file that "
        "holds it in [encryption] key; {nobody}"
    )
    raise StoreError(Worded(other, home=home, id=mark.id, path=path, nobody=_NOBODY))


def _text(path: Path) -> str:
    """Raises ConfigError, OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(descriptor, encoding="ascii", errors="replace") as file:
        info = os.fstat(descriptor)
        if not stat.S_ISREG(info.st_mode):
            raise ConfigError(Worded("it is no plain file"))
        if info.st_uid != os.geteuid() or info.st_mode & 0o077:
            seen = "others can read the keys in it: chmod 600 {path}, or take a disk where that works"
            raise ConfigError(Worded(seen, path=path))
        return file.read(1 << 16)
