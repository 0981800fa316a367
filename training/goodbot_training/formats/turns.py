# SPDX-License-Identifier: Apache-2.0
"""What a whole model that leaves goodbot says of its turns: nothing but the model's files goes with it.

Its new owner's server renders prompts by the template in them, and ends answers where they say. So both are
looked at first: a template that shows no question is refused, one that goodbot has to help is told, and
where a turn ends is written into the files.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from goodbot.base.errors import AdapterError, TrainingError
from goodbot.base.worded import Worded
from goodbot.base.worded_parts import parts_of

from goodbot_training.backends.chat import ChatTemplate
from goodbot_training.formats.checkpoint import Checkpoint
from goodbot_training.job.types import as_mapping

GENERATION = "generation_config.json"


@dataclass(frozen=True, kw_only=True, slots=True)
class Turns:
    """How a model's turns look to a program that has its files only."""

    end: int
    """The token that ends an answer."""
    notes: Sequence[str]
    """What whoever serves it must know, a clause each."""

    def told(self) -> dict[str, Any]:
        """The notes as the protocol has them."""
        return {"notes": list(self.notes), "parts": [*map(parts_of, self.notes)]}


def look(base: Checkpoint) -> Turns:
    """Those of a model. Raises AdapterError where its template cannot be used at all."""
    try:
        chat = ChatTemplate(base.directory, base.config)
    except TrainingError as error:
        raise AdapterError(Worded("{why} Nothing was made", why=error)) from error
    return Turns(end=chat.end, notes=chat.helped)


def declare(directory: Path, end: int) -> None:
    """Name the end of a turn among the ends in a model's generation_config.json."""
    path = directory / GENERATION
    try:
        config = as_mapping(json.loads(path.read_bytes()), "generation_config.json")
    except (OSError, ValueError, TrainingError):
        config = {}
    named: Any = config.get("eos_token_id")
    known: list[Any] = [] if named is None else [named]
    if isinstance(named, list):
        known = cast("list[Any]", named)
    if end not in known:
        told = {**config, "eos_token_id": [*known, end]}
        path.write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")
