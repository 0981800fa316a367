# SPDX-License-Identifier: Apache-2.0
"""A tracker's process: `python -m goodbot.learning.tracking.child package.module:Class`.

JSON lines on stdin: `{"run", "directory", "about", "schema", "settings"}` first (`schema` names the
class of the settings), then `{"spread", "values"}` for what has a distribution, `{"step", "numbers"}` for
each step, then `{"state"}`. It exits with 0, or with 1 and the reason as the last line on stderr.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from goodbot.api.tracker import TrackedRun, Tracker
from goodbot.base import priority
from goodbot.base.errors import unexpected

_INTERRUPTED = "interrupted"
"""The state of a run whose daemon is gone."""


def main(arguments: list[str], lines: Iterable[str]) -> int:
    """Feed one tracker until the run, or the daemon, has ended."""
    priority.give_way()
    try:
        feed(arguments[0], (json.loads(line) for line in lines))
    except Exception as error:
        sys.stderr.write(f"\n{unexpected(error)[:300]}\n")
        return 1
    return 0


def feed(factory: str, messages: Iterator[dict[str, Any]]) -> None:
    """Make the tracker that `factory` names and pass on what comes in."""
    first = next(messages)
    directory = Path(first["directory"])
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    run = TrackedRun(name=first["run"], directory=directory, about=first["about"])
    settings = _named(first["schema"])(**first["settings"])
    tracker: Tracker = _named(factory)(settings, run)
    state = _INTERRUPTED
    for message in messages:
        if "state" in message:
            state = message["state"]
        elif "spread" in message:
            tracker.spread(message["spread"], message["values"])
        else:
            tracker.log(message["step"], message["numbers"])
    tracker.finish(state)


def _named(path: str) -> Any:
    """What `package.module:Name` names; both come from the plugin's own spec."""
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], sys.stdin))
