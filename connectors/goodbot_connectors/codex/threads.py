# SPDX-License-Identifier: Apache-2.0
"""Which threads of Codex a person talks in. `notify` tells of all: of the hidden ones that make up titles,
and of subagents, too.

Codex keeps a file of each thread that a person can come back to; its first line says who began it.
"""

from __future__ import annotations

import json
import string
from collections.abc import Callable
from pathlib import Path

from goodbot_connectors.kit.fields import as_json, sub
from goodbot_connectors.kit.lru import Recent

_LONGEST_LINE = 1 << 20
_UUID = 36
_ID = frozenset(string.hexdigits + "-")


def of(transcript: str) -> str:
    """The thread in whose file a hook says it is written; empty if that cannot be told.

    Not the session: whoever goes back in a conversation stays in the session, and is in a thread of their own
    from there on, to which the answers that were taken back do not belong.
    """
    name = transcript.rpartition("/")[2]
    found = name.removesuffix(".jsonl")[-_UUID:]
    return found if name.startswith("rollout-") and _fits(found) else ""


def _fits(thread: str) -> bool:
    return len(thread) == _UUID and thread.count("-") == 4 and _ID.issuperset(thread)


class ThreadFinder:
    """Looks a thread up where Codex keeps its sessions. Its methods read files: call them in a thread."""

    def __init__(self, home: Callable[[], Path | None]) -> None:
        """`home` is where `$CODEX_HOME` was when goodbot was connected; None while it is not known."""
        self._home = home
        self._persons: Recent[str, bool] = Recent()

    def is_a_persons(self, thread: str) -> bool:
        """Whether a person has begun this thread; False where that cannot be told."""
        if thread not in self._persons:
            found = self._look(thread)
            if found is None:
                return False
            self._persons[thread] = found
        return self._persons[thread]

    def forget(self) -> None:
        """Look again who has begun which."""
        self._persons.clear()

    def _look(self, thread: str) -> bool | None:
        home = self._home()
        if home is None or not _fits(thread):
            return None
        for path in (home / "sessions").glob(f"*/*/*/rollout-*-{thread}.jsonl"):
            try:
                with path.open("rb") as file:
                    first = json.loads(file.readline(_LONGEST_LINE))
            except (OSError, ValueError, RecursionError):
                continue
            about = sub(as_json(first), "payload")
            return about.get("thread_source", "user") == "user" and isinstance(about.get("source"), str)
        return None
