# SPDX-License-Identifier: Apache-2.0
"""Setting goodbot up in the browser, or opening the pages of the one that runs.

Exit codes as for `goodbot init`; 2 where goodbot is set up and does not run.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from goodbot.api.texts import reworded
from goodbot.api.texts.terminal import phrase, speaking
from goodbot.base import desktop
from goodbot.base.errors import GoodbotError, UsageError
from goodbot.base.printing import say
from goodbot.cli import init, web
from goodbot.cli.browser.dialogue import PageDialogue
from goodbot.cli.browser.serving import HOST, SetupPage, served
from goodbot.cli.browser.stage import Stage
from goodbot.cli.setup.dialogue import Dialogue
from goodbot.cli.setup.draft import Draft

_TUNNEL = "  ssh -N -L {port}:{host}:{port} NAME@SERVER"


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
        raise UsageError(phrase("browser_person"))
    given, stage = init.given(arguments), Stage()
    with served(stage) as page, _folder() as folder:
        stage.silent = lambda: show_again(page)
        came = _comes(stage, page.address, Path(folder))
        settled = settle(stage, arguments, draft, given) if came else None
    dialogue = Dialogue({}, asks=False, out=sys.stdout)
    if settled is None:
        dialogue.say(f"\n{dialogue.phrase('setup_left')}")  # the terminal's own ^C has no end of line
        return 130
    unseen = stage.unseen()
    for text in unseen:
        dialogue.say(text)
    if settled.draft.start != "now" and not unseen:
        dialogue.say(dialogue.phrase("setup_next", what=settled.result["next"]))
    return settled.start(dialogue)


def _folder() -> tempfile.TemporaryDirectory[str]:
    """For the browser's file, which a slow one may still be given while all this ends."""
    return tempfile.TemporaryDirectory(prefix="goodbot-", ignore_cleanup_errors=True)


def _comes(stage: Stage, address: str, folder: Path) -> bool:
    """Show the page, and wait until it is there; False where somebody has left before."""
    try:
        open_page(address, folder)
        stage.wait_for_page()
    except KeyboardInterrupt:
        return False
    return True


def open_page(address: str, folder: Path) -> None:
    """Show the page where its person sits. Other accounts see what programs are started with, so the
    browser gets a file of ours; the address itself is for whoever reads this terminal."""
    at_hand = desktop.sits_here()
    lines = [phrase("browser_shown" if at_hand else "browser_to_open"), f"  {address}"]
    if desktop.over_ssh():
        tunnel = _TUNNEL.format(host=HOST, port=urlsplit(address).port)
        lines += [phrase("browser_elsewhere"), tunnel]
    say("\n\n".join([*lines, phrase("browser_ends")]), flush=True)
    if at_hand:  # some browsers come back only when they are closed
        page = folder / "setup.html"
        threading.Thread(target=_show, args=(address, page), name="browser", daemon=True).start()


def show_again(page: SetupPage) -> None:
    """Where the page was there and is not seen any more: another way to it, once for each that is used."""
    if page.renew():
        with contextlib.suppress(OSError):  # whoever sees no terminal may still have the page
            say(f"\n{phrase('browser_silent')}\n\n  {page.address}", flush=True)


def _show(address: str, page: Path) -> None:
    with contextlib.suppress(OSError):  # the disk is full, say: the address is printed
        desktop.show(address, page)


def settle(
    stage: Stage, arguments: argparse.Namespace, draft: Draft, given: Mapping[str, str]
) -> init.Settled | None:
    """The set-up, with an end that its page is told of; None where somebody has left, and nothing is written.

    Raises GoodbotError, OSError, and KeyboardInterrupt once it is written.
    """
    try:
        with speaking(stage.language):
            settled = init.settle(PageDialogue(stage, given), arguments, draft)
    except KeyboardInterrupt:
        stage.end("failed")
        raise
    except (GoodbotError, OSError) as error:
        stage.end("failed", [reworded(error, stage.language)])
        raise
    if settled is None:
        stage.end("left")
    else:
        stage.end("starts" if settled.draft.start == "now" else "done")
    return settled
