# SPDX-License-Identifier: Apache-2.0
"""A keyring that tests have for themselves."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import keyring
from keyring.backend import KeyringBackend


class Ring(KeyringBackend):
    """A keyring in memory."""

    priority = 9

    def __init__(self) -> None:
        super().__init__()
        self.entries: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, username: str) -> str | None:
        return self.entries.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.entries[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        del self.entries[service, username]


@contextlib.contextmanager
def used() -> Iterator[Ring]:
    """It is this session's for as long as the block lasts."""
    before = keyring.get_keyring()
    made = Ring()
    keyring.set_keyring(made)
    try:
        yield made
    finally:
        keyring.set_keyring(before)
