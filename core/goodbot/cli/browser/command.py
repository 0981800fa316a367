# SPDX-License-Identifier: Apache-2.0
"""Setting goodbot up in the browser, or opening the pages of the one that runs.

Exit codes as for `goodbot init`; 2 where goodbot is set up and does not run.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from goodbot.base import desktop
from goodbot.base.errors import GoodbotError, UsageError
from goodbot.base.printing import say
from goodbot.cli import init, web
from goodbot.cli.browser.dialogue import PageDialogue
from goodbot.cli.browser.serving import served
from goodbot.cli.browser.stage import Stage
from goodbot.cli.setup.dialogue import Dialogue
from goodbot.cli.setup.draft import Draft

_SHOWN = """\
Your browser shows the setup. If it does not, open this in a browser of this computer; it works once:"""
_TO_OPEN = "Open this in a browser of this computer to set goodbot up; it works once:"
_ENDS = "Ctrl-C ends it. Settings are written after the last question."


def pages(globals_: list[str]) -> int:
    """Open the pages of the goodbot that runs: what `goodbot web` does."""
    from goodbot.cli import parser

    return web.main(parser.parse([*globals_, "web"]))


def main(globals_: list[str]) -> int:
    """Ask the questions of `goodbot init` on a page, write the answers, and start."""
    from goodbot.cli import parser

    return ask(parser.parse([*globals_, "init"]), Draft())


def ask(arguments: argparse.Namespace, draft: Draft) -> int:
    """Ask what `draft` and the flags leave open. Raises UsageError."""
    if arguments.yes or arguments.json:
        raise UsageError("--browser is for a person: leave --yes and --json away")
    given, stage = init.given(arguments), Stage()
    with served(stage) as address, tempfile.TemporaryDirectory(prefix="goodbot-") as folder:
        _open(address, Path(folder))
        settled = _ask(stage, arguments, draft, given)
    dialogue = Dialogue({}, asks=False, out=sys.stdout)
    if settled is None:
        dialogue.say(dialogue.phrase("setup_left"))
        return 130
    if settled.draft.start != "now":
        dialogue.say(dialogue.phrase("setup_next", what=settled.result["next"]))
    return settled.start(dialogue)


def _open(address: str, folder: Path) -> None:
    """Show the page where its person sits. Other accounts see what programs are started with, so the
    browser gets a file of ours; the address itself is for whoever reads this terminal."""
    try:
        opened = desktop.sits_here() and desktop.show(address, folder / "setup.html")
    except OSError:  # the disk is full, say
        opened = False
    say(f"{_SHOWN if opened else _TO_OPEN}\n\n  {address}\n\n{_ENDS}", flush=True)


def _ask(
    stage: Stage, arguments: argparse.Namespace, draft: Draft, given: Mapping[str, str]
) -> init.Settled | None:
    """The set-up, with an end that its page is told of. Raises GoodbotError, OSError."""
    try:
        stage.wait_for_page()
        settled = init.settle(PageDialogue(stage, given), arguments, draft)
    except KeyboardInterrupt:
        stage.end("left")
        return None
    except (GoodbotError, OSError) as error:
        stage.end("failed", [str(error)])
        raise
    if settled is None:
        stage.end("left")
    else:
        stage.end("starts" if settled.draft.start == "now" else "done")
    return settled
