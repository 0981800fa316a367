# SPDX-License-Identifier: Apache-2.0
"""The verified files of a version where children and model servers can read them.

That is where they lie, or, where adapters are encrypted, a copy in clear (`goodbot.config.clear`), made when
it is asked for and checked each time. A copy that is not what was written is made again.
"""

from __future__ import annotations

import logging
import os
import shutil
import threading
from pathlib import Path

from goodbot.api.adapters.base import Base
from goodbot.api.adapters.files import MAX_TEXT, MAX_WEIGHTS, plain
from goodbot.api.adapters.manifest import CONFIG, FINGERPRINT, MANIFEST, WEIGHTS, verify
from goodbot.base import encrypted, trees
from goodbot.base.errors import AdapterError, ServerError
from goodbot.base.worded import Worded
from goodbot.config import clear
from goodbot.learning.adapters import formats

logger = logging.getLogger(__name__)

_LIMITS = {MANIFEST: MAX_TEXT, CONFIG: MAX_TEXT, FINGERPRINT: MAX_TEXT, WEIGHTS: MAX_WEIGHTS}
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_making = threading.Lock()


def verified(root: Path, directory: str, expected_sha256: str, base: Base | None = None) -> Path:
    """The directory of a version in clear. As `verify`; raises ServerError where there is no room for it."""
    place = clear.of(root)
    if place == root:
        return verify(root, directory, expected_sha256, base)
    with _making:
        if (place / directory).exists():
            try:
                return verify(place, directory, expected_sha256, base)
            except AdapterError as error:
                logger.warning("the copy of %s is made again: %s", directory, error)
        verify(root, directory, expected_sha256, base)
        try:
            _copy(root / directory, place / directory)
        except OSError as error:
            full = "{name} is encrypted, and cannot be laid in clear into {place} ({why}): make room there"
            raise ServerError(Worded(full, name=directory, place=place, why=error.strerror)) from error
        return verify(place, directory, expected_sha256, base)


def remove(root: Path, directory: str) -> None:
    """Delete the files of a version, in clear and in all formats, too. Raises OSError, StoreError."""
    with _making:  # else a copy that is being made appears after what it was made of has gone
        for place in dict.fromkeys((root, clear.of(root))):
            _delete(place / directory)
            formats.forget(place, directory)


def _delete(directory: Path) -> None:
    """Of a copy, nobody may take a file away; we allow it to ourselves first. Raises OSError."""
    if directory.is_symlink():
        directory.unlink()
    elif directory.exists():
        directory.chmod(0o700)
        trees.remove(directory)


def _copy(source: Path, target: Path) -> None:
    """Each of its files, decrypted; it appears whole. Raises AdapterError, OSError."""
    part = target.with_name(f".{target.name}.part")
    _delete(part)
    _delete(target)
    part.mkdir(mode=0o700, parents=True)
    try:
        for name in {entry.name.removesuffix(encrypted.ENDING) for entry in source.iterdir()} & {*_LIMITS}:
            with plain(source / name, limit=_LIMITS[name]) as file:
                descriptor = os.open(part / name, _CREATE, 0o400)
                with os.fdopen(descriptor, "wb") as out:
                    shutil.copyfileobj(file, out)
        part.rename(target)
        target.chmod(0o500)  # nothing that only reads it adds or removes a file
    except BaseException:
        trees.remove(part, ignore_errors=True)
        raise
