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

from goodbot.api.texts.terminal import phrase, sentences
from goodbot.base import packages
from goodbot.base.errors import GoodbotError, UsageError
from goodbot.base.packages import NAME
from goodbot.base.printing import print_answer, say
from goodbot.cli.asking import agrees


def main(arguments: argparse.Namespace) -> int:
    """Say what is installed and what upgrades it, or go one release back."""
    if arguments.check == arguments.back:
        raise UsageError(phrase("upgrade_which"))
    if arguments.back:
        return _back(arguments)
    installed, origin = metadata.version(NAME), packages.origin()
    steps: list[str] = []
    if source := origin.checkout:
        steps = [f"git -C {shlex.quote(str(source))} pull", packages.folder_line(str(source), "--editable")]
        facts = {"version": installed, "first": steps[0], "second": steps[1]}
        text = phrase("upgrade_source", path=source, **facts)
    elif origin.file and not origin.file.is_dir():
        text = phrase("upgrade_file", version=installed, path=origin.file)
    else:
        steps = [packages.folder_line()]
        key = "upgrade_folder_from" if origin.file else "upgrade_folder"
        text = phrase(key, version=installed, path=origin.file, line=steps[0])
    if steps:
        text += "\n" + sentences(phrase("upgrade_stop"), phrase("upgrade_data"))
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

    from goodbot.cli.offline import require_file
    from goodbot.store import downgrade

    require_file(arguments.home, arguments.config)
    given_up = asyncio.run(downgrade.given_up(arguments.home))
    if given_up:
        lost = "".join(f"\n  {line}" for line in given_up)
        say(f"{phrase('upgrade_lost')}{lost}", file=sys.stderr)
        if not agrees(phrase("upgrade_ask"), yes=arguments.yes):
            raise GoodbotError(phrase("upgrade_not"))
    text = asyncio.run(downgrade.step_back(arguments.home))
    data = {"given_up": list(given_up)}
    print_answer({"text": text, "data": data}, as_json=arguments.json)
    return 0
