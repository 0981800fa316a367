# SPDX-License-Identifier: Apache-2.0
"""A settings file of another program: we add something to it, and later leave it as it was.

What it was before our first write is kept, with a hash of what we wrote (`before`), from which `restore`
knows whether anybody else has written since.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from collections.abc import Callable, Generator
from dataclasses import replace
from pathlib import Path

from goodbot.api.texts.terminal import phrase
from goodbot.base import durable
from goodbot.base.errors import FatalConnectorError
from goodbot.base.worded import Worded, said_by

from goodbot_connectors.kit.before import Before, Record, digest

__all__ = ["SettingsFile"]

_BOM = "\ufeff"
_LARGEST = 16 * 1024 * 1024  # bytes; settings are never so long, what is, is something else


class SettingsFile:
    """One file of another program, by the path that this program opens; symbolic links stay links.

    `check` is called with the text and raises ValueError where it is malformed (`json.loads`,
    `tomllib.loads`): such a file is neither read for us nor written. All methods raise
    `FatalConnectorError` with a sentence for the person whose file it is.
    """

    def __init__(
        self, path: Path, home: Path, connector: str, *, check: Callable[[str], object] | None = None
    ) -> None:
        """`home` is the state directory, `connector` whose doing it is."""
        self.path = path
        self._check = check
        self._seen: bytes | None = None
        self._bom = ""
        self._before = Before(path, home, connector)

    @property
    def written(self) -> bool:
        """Whether we have written it, and not restored it since."""
        return self._before.there

    @property
    def alone(self) -> bool:
        """Whether nobody else has written it since we did: `restore` leaves it as it was before us."""
        record = self._before.record()
        return record is not None and record.alone and digest(self._bytes() or b"") == record.wrote

    def read(self) -> str:
        """Its text without a byte order mark, line ends as they are; "" when there is none."""
        self._seen = data = self._bytes()
        try:
            text = (data or b"").decode()
            self._bom = _BOM if text.startswith(_BOM) else ""
            text = text.removeprefix(_BOM)
            if text.strip() and self._check:
                self._check(text)
        except (ValueError, RecursionError) as error:
            wrong = Worded("it is not UTF-8") if isinstance(error, UnicodeDecodeError) else said_by(error)
            odd = "{path} cannot be understood ({why}); it was left as it is. Correct it, then try again."
            raise FatalConnectorError(Worded(odd, path=self.path, why=wrong)) from error
        return text

    def write(self, text: str) -> None:
        """Replace it in one step, for whoever reads it meanwhile; keeps its mode and its owner.

        Nothing happens when that is its text already. What was read before and has changed since is
        not overwritten: that is an error.
        """
        before = self._bytes()
        if self._seen is not None and before != self._seen:
            raise FatalConnectorError(Worded("{path} was changed just now: try again.", path=self.path))
        data = (self._bom + text).encode()
        if data == before:
            return
        old = self._before.record()
        if old is None:
            record = Record(
                path=str(self.path),
                existed=before is not None,
                wrote=digest(data),
                made=tuple(str(one) for one in self._missing()),
                before=_sum(before),
            )
        else:
            ours = before is not None and digest(before) == old.wrote
            record = replace(old, wrote=digest(data), alone=old.alone and ours)
        try:
            self._before.keep(record, before if old is None else None)
            self._replace(data)
        except OSError as error:
            if old is None:
                self._forget()
            raise self._trouble("{path} cannot be written: {why}", error) from error
        self._seen = data

    @contextlib.contextmanager
    def lent(self) -> Generator[None]:
        """Let the other program's own command change it for us: what that leaves counts as ours.

        So `restore` leaves it as it was before the first such command, if nobody else has written.
        """
        before, old = self._bytes(), self._before.record()
        wrote = digest(before or b"")
        record = old or Record(
            path=str(self.path),
            existed=before is not None,
            wrote=wrote,
            made=tuple(str(one) for one in self._missing()),
            before=_sum(before),
        )
        alone = record.alone and record.wrote == wrote
        try:
            if old is None:
                self._before.keep(record, before)
            try:
                yield
            finally:
                if (after := self._bytes()) == before and old is None:
                    self._forget()
                else:
                    self._before.keep(replace(record, wrote=digest(after or b""), alone=alone), None)
        except OSError as error:
            raise self._trouble("{path} cannot be kept: {why}", error) from error
        self._seen = None

    def restore(self, without_ours: Callable[[str], str]) -> str:
        """Leave it as it was before us, byte for byte, if nobody else has written it since.

        Else only what is ours goes: `without_ours` gets its text and returns it without that. Returns a
        line for the person.
        """
        record, now = self._before.record(), self._bytes()
        if now is None:
            self._leave(record)
            return phrase("sf_gone", path=self.path)
        try:
            before = self._before.bytes(record) if record else None
            if record and (now == before or (record.alone and digest(now) == record.wrote)):
                if before is None:
                    self._remove()
                elif now != before:
                    self._replace(before)
                self._leave(record)
                return phrase("sf_before", path=self.path)
            text = self.read()
            left = without_ours(text)
            if left == text:
                self._leave(record)
                return phrase("sf_nothing", path=self.path)
            if not left.strip() and record and not record.existed:
                self._remove()
            else:
                self._replace((self._bom + left).encode())
        except OSError as error:
            raise self._trouble("{path} cannot be written: {why}", error) from error
        self._leave(record)
        return phrase("sf_ours_gone", path=self.path)

    def _bytes(self) -> bytes | None:
        """What is in it; None when there is none."""
        try:
            with open(self.path, "rb", opener=_without_waiting) as file:
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    odd = Worded("{path} is no file: look at what it is.", path=self.path)
                    raise FatalConnectorError(odd)
                data = file.read(_LARGEST + 1)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._trouble("{path} cannot be read: {why}", error) from error
        if len(data) > _LARGEST:
            raise FatalConnectorError(Worded("{path} is too long for a file of settings.", path=self.path))
        return data

    def _replace(self, data: bytes) -> None:
        """Write beside what a link leads to, then rename. Raises OSError."""
        target = Path(os.path.realpath(self.path))
        for missing in reversed(self._missing()):
            missing.mkdir(mode=0o700)
        partial = target.with_name(f".{target.name}.goodbot-{os.getpid()}")
        try:
            with durable.private(partial) as file:
                file.write(data)
                with contextlib.suppress(FileNotFoundError):
                    self._like(target, partial)
                durable.flush(file)
            partial.replace(target)
        finally:
            partial.unlink(missing_ok=True)
        durable.sync(target.parent)

    @staticmethod
    def _like(target: Path, partial: Path) -> None:
        """Owner, mode and attributes of the one for the other; its time stays now."""
        there = target.stat()
        if (there.st_uid, there.st_gid) != (partial.stat().st_uid, partial.stat().st_gid):
            os.chown(partial, there.st_uid, there.st_gid)
        shutil.copystat(target, partial)
        os.utime(partial)

    def _missing(self) -> list[Path]:
        """Directories on the way to it that are not there, the innermost first."""
        parent = Path(os.path.realpath(self.path)).parent
        return [one for one in (parent, *parent.parents) if not one.exists()]

    def _remove(self) -> None:
        os.unlink(os.path.realpath(self.path))  # a link that led nowhere before leads nowhere again

    def _leave(self, record: Record | None) -> None:
        """Forget what it was; directories that we made go, if nothing else is in them."""
        with contextlib.suppress(OSError):
            for made in record.made if record else ():
                os.rmdir(made)
        self._forget()

    def _forget(self) -> None:
        self._before.forget()
        self._seen = None

    def _trouble(self, what: str, error: OSError) -> FatalConnectorError:
        target = os.path.realpath(self.path)
        path = str(self.path)
        if target != os.path.abspath(self.path):
            path = Worded("{path} (a link to {target})", path=path, target=target)
        wrong = Worded(what, path=path, why=error.strerror or str(error))
        managed = (
            "{wrong}. Where another program manages it, it has to be changed there; nothing was changed."
        )
        return FatalConnectorError(Worded(managed, wrong=wrong))


def _sum(before: bytes | None) -> str:
    return "" if before is None else digest(before)


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)  # a pipe would wait for its writer
