# SPDX-License-Identifier: Apache-2.0
"""Which files can be imported: the one table of their forms."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from goodbot.base.errors import UsageError
from goodbot.base.worded import Worded
from goodbot.conversation.imports import others
from goodbot.conversation.imports.files import objects
from goodbot.conversation.imports.others import Records


def own(path: Path, mine: bool) -> Records:
    """What `goodbot export` has written."""
    if mine:
        raise UsageError(Worded("--mine is for files of Open WebUI: goodbot's own say who is who"))
    size = path.stat().st_size
    for done, record in objects(path):
        yield done, size, record


FORMS: dict[str, Callable[[Path, bool], Records]] = {
    "jsonl": own,
    "open-webui": others.open_webui,
    "reinforceclaw": others.reinforceclaw,
}


def records(path: Path, form: str, *, mine: bool = False) -> Records:
    """The answers of a file; `mine`: what people of another program said, whoever imports said.

    Raises UsageError, OSError.
    """
    return FORMS[form](path, mine)
