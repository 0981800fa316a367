# SPDX-License-Identifier: Apache-2.0
"""The config file that `goodbot init` writes where there is none, and how answers get into one."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import cast

from goodbot.access.login import OWNER
from goodbot.base.suggest import TERMINAL
from goodbot.cli.setup.draft import OWN, Draft
from goodbot.cli.setup.presets import KEYS, preset_of
from goodbot.config.file import ConfigFile
from goodbot.config.sections import PORT, PUBLISHED

NEW = """\
# How this goodbot is set up. Change it here or with `goodbot init`, which keeps your comments;
# `goodbot doctor` says what is wrong. Lines that begin with # are settings at their defaults;
# docs/config.md lists all. Tokens are never in this file.

[model]
path = ""  # what answers: a directory, a name in the hub, or "demo"

[serving]
# max_tokens = 512     # of an answer, at most
# system_prompt = ""   # its personality and its task
# history = 8          # earlier exchanges that it remembers in a conversation
# stars = false        # 1 to 5 stars under answers, in place of thumbs

[training]
backend = "auto"  # mlx or torch; auto takes the best that is installed
schedule = "auto"  # as soon as there are enough ratings; or "03:30", or "manual"
# min_ratings = 40     # so many new ratings start a training
# idle_seconds = 5.0   # and only when nobody has written for so long
# quiet_hours = ""     # and not in "23:00-07:00", say
# on_battery = false   # and not while the machine runs on its battery
# max_load = 0.75      # and not while other programs use more of the processors
# max_gpu = 0.3        # or of the GPU (their work, not the memory that they hold)

[training.settings]  # what stands here besides the preset wins over it

[privacy]
# unrated_days = 7.0   # answers that nobody rated are deleted then
"""

_PRESET = "careful, balanced or aggressive, by the model's shape"
_PEOPLE = {
    "owners": "user ids; who paired with a code is an owner too and not listed",
    "raters": "others whose ratings teach; they may also talk",
    "talkers": "others who may write to it privately",
}
_EVERY = "0.0.0.0"  # noqa: S104  of the container, whose port is published where `url` says
_HERE = "whoever sits at this machine"
_NAMES = "names that you choose; `goodbot web` logs in as the first"


def fill(file: ConfigFile, draft: Draft, *, owner: str = "") -> None:
    """Put the answers into the file; whatever was not asked for stays as it is.

    `owner` owns the bot there where nobody is asked; empty: people have ids of the platform's own.
    """
    if not draft.alone:
        _fill_bot(file, draft)
    if (url := os.environ.get(PUBLISHED, "")) and file.get("http") is None:
        file.set("http.port", PORT, comment="also asked whether goodbot is well")
        file.set("http.host", _EVERY, comment="of the container: its port is published elsewhere")
        file.set("http.url", url, comment="where people open it")
    if draft.platform != TERMINAL:
        _fill_connector(file, draft, owner)


def _fill_bot(file: ConfigFile, draft: Draft) -> None:
    file.set("model.path", draft.model, comment="what answers")
    file.set("training.backend", draft.backend, comment="what trains and serves")
    file.set("training.schedule", draft.schedule, comment='"auto", "03:30" or "manual"')
    if draft.preset == OWN:
        if preset_of(cast("Mapping[str, object]", file.get("training.settings") or {})):
            file.set("training.settings.preset", OWN, comment=_PRESET)
    else:
        file.set("training.settings.preset", draft.preset, comment=_PRESET)
        for key in KEYS:
            file.remove(f"training.settings.{key}")
    if draft.chosen:
        from goodbot.inference.models.choose import go_on_answering, settle

        settle(file, *draft.chosen)
        go_on_answering(file, draft.serving)


def _fill_connector(file: ConfigFile, draft: Draft, owner: str) -> None:
    section = f"connectors.{draft.platform}"
    fresh = file.get(section) is None
    for question, value in draft.settings.items():
        if value or file.get(f"{section}.{question.key}") is not None:
            file.set(f"{section}.{question.key}", value, comment=question.text)
    people = {"owners": (owner,) if owner else draft.owners, "raters": (), "talkers": ()}
    about_owners = {"": _PEOPLE["owners"], OWNER: _NAMES}.get(owner, _HERE)
    named = owner == OWNER or bool(file.get(f"{section}.owners"))
    for key, about in {**_PEOPLE, "owners": about_owners}.items():
        if fresh or (key == "owners" and not (owner and named)):
            file.set(f"{section}.{key}", [_id(person) for person in people[key]], comment=about)


def _id(person: str) -> int | str:
    """Numbers as numbers, as people write them."""
    return int(person) if person.isdecimal() and str(int(person)) == person else person
