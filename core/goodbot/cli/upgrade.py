# SPDX-License-Identifier: Apache-2.0
"""`goodbot upgrade --check`: how a newer goodbot is installed here. It installs nothing, and asks nobody.

No package index is asked: goodbot is on none yet, so who has its name there would be a stranger.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from importlib import metadata
from typing import Any

from goodbot.base import packages
from goodbot.base.errors import GoodbotError, UsageError
from goodbot.base.packages import NAME
from goodbot.base.printing import print_answer, say
from goodbot.cli.asking import agrees

_DATA = (
    "The first start of a new version backs the data up before it changes it; "
    "`goodbot upgrade --back` makes the data fit the release before."
)


def main(arguments: argparse.Namespace) -> int:
    """Say what is installed and what upgrades it, or go one release back."""
    if arguments.check == arguments.back:
        raise UsageError("type `goodbot upgrade --check`, or `goodbot upgrade --back`")
    if arguments.back:
        return _back(arguments)
    installed, origin = metadata.version(NAME), packages.origin()
    steps: list[str] = []
    if source := origin.checkout:
        steps = [f"git -C {shlex.quote(str(source))} pull", packages.folder_line(str(source), "--editable")]
        text = f"goodbot {installed} runs from the source in {source}: `{steps[0]}`, then `{steps[1]}`."
    elif origin.file and not origin.file.is_dir():
        text = (
            f"goodbot {installed} was installed from {origin.file}: there is no place to ask for a "
            "newer one. Get one where you got that, and install it in the same way."
        )
    else:
        steps = [packages.folder_line()]
        known = f" from {origin.file}" if origin.file else ""
        text = (
            f"goodbot {installed} was installed{known}: there is no place to ask for a newer one. Get a "
            "newer folder of goodbot where you got this one, and install it as before. Type there: "
            f"`{steps[0]}`."
        )
    if steps:
        text += f"\nStop goodbot before, start it after. {_DATA}"
    data: dict[str, Any] = {
        "installed": installed,
        "source": str(origin.checkout or origin.file or "") or None,
        "commands": steps,
    }
    print_answer({"text": text, "data": data}, as_json=arguments.json)
    return 0


def _back(arguments: argparse.Namespace) -> int:
    """One release back, after it was said what that gives up."""
    import asyncio

    from goodbot.store import downgrade

    given_up = asyncio.run(downgrade.given_up(arguments.home))
    if given_up:
        lost = "".join(f"\n  {line}" for line in given_up)
        say(f"Going back one release gives up{lost}", file=sys.stderr)
        if not agrees("Go back?", yes=arguments.yes):
            raise GoodbotError("nothing was changed")
    text = asyncio.run(downgrade.step_back(arguments.home))
    data = {"given_up": list(given_up)}
    print_answer({"text": text, "data": data}, as_json=arguments.json)
    return 0
