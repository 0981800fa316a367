# SPDX-License-Identifier: Apache-2.0
"""The one moment that writes: the config, then the tokens; a failure leaves nothing of either."""

from __future__ import annotations

import contextlib
import os

from goodbot.cli.setup.asked import known_owner
from goodbot.cli.setup.draft import Draft, StateFound
from goodbot.cli.setup.template import fill
from goodbot.config import Config


def save(place: StateFound, draft: Draft) -> Config:
    """Write everything or nothing. Raises GoodbotError or OSError; then all is as it was."""
    new_home = not place.config.home.exists()
    before = place.file.before
    fill(place.file, draft, owner=known_owner(place, draft))
    written = place.file.save()
    stored = place.secrets.environment(draft.tokens) if draft.tokens else {}
    kept = {name: (place.secrets.where(name), stored.get(name, "")) for name in draft.tokens}
    done: list[str] = []
    try:
        for name, value in draft.tokens.items():
            if draft.keep == "environment":
                # Whoever sets it again tomorrow has it today too, for a bot that starts now.
                os.environ[name] = value
            else:
                done.append(name)
                place.secrets.set(name, value, keyring=draft.keep == "keyring")
    except BaseException:
        for name in done:
            with contextlib.suppress(Exception):
                _put_back(place, name, *kept[name])
        place.file.restore(before)
        if new_home:
            with contextlib.suppress(OSError):  # somebody else has put something there
                place.config.home.rmdir()
        raise
    return written


def _put_back(place: StateFound, name: str, where: str, value: str) -> None:
    if where in ("file", "keyring"):
        place.secrets.set(name, value, keyring=where == "keyring")
    else:
        place.secrets.delete(name)
