# SPDX-License-Identifier: Apache-2.0
"""The key of an encrypted backup. What it brings is encrypted with that key then, as it was when made."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from pathlib import Path

from goodbot.api.texts.terminal import phrase
from goodbot.base import encrypted
from goodbot.base.errors import ConfigError, StoreError
from goodbot.config import EncryptionConfig, vault
from goodbot.config.file import ConfigFile
from goodbot.config.vault import Vault, VaultRecord


@contextlib.contextmanager
def of_backup(path: Path, home: Path, staging: Path, place: str) -> Generator[Vault | None]:
    """The vault of a backup that is unpacked into `staging`; None: it is in clear.

    `place`: where its key is; by default where the config of `home` says. Raises StoreError, OSError.
    """
    mark = encrypted.mark(path)
    if mark is None:
        yield None
        return
    here = vault.of(home / vault.FILE)
    place = place or (here.settings.key if here and here.settings.enabled else "")
    if not place:
        raise StoreError(phrase("backup_which_key", path=path, id=mark.id))
    settings = EncryptionConfig(enabled=True, key=place)
    Vault(home, settings).key(mark)  # found once, it is known
    found = Vault(staging, settings)
    found.write(VaultRecord(key=mark, place=place))
    with vault.lent(staging, found):
        yield found


def settle(staging: Path, known: Vault | None) -> None:
    """The config that came with it says what is so. Raises OSError."""
    if known is None and not (staging / "config.toml").exists():
        return
    with contextlib.suppress(ConfigError):  # one that cannot be read is told of elsewhere
        file = ConfigFile(staging)
        if known is None and not file.get("encryption.enabled"):
            return
        file.set("encryption.enabled", known is not None)
        if known is not None:
            file.set("encryption.key", known.settings.key)
        file.save()
