# SPDX-License-Identifier: Apache-2.0
"""`goodbot web`: a link that logs in to the browser, made by the goodbot that runs, and opened here.

With `--allow`, a code for one setting of its page of settings.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from goodbot.api.control import call
from goodbot.api.texts.terminal import phrase
from goodbot.base import desktop
from goodbot.base.errors import UsageError
from goodbot.base.printing import print_answer, say
from goodbot.config.layout import LOGIN_PAGE


def main(arguments: argparse.Namespace) -> int:
    """Print the link, and open it where its person sits; or sign everybody out."""
    if arguments.user and arguments.sign_out:
        raise UsageError(phrase("web_everybody"))
    if arguments.allow and (arguments.user or arguments.sign_out):
        raise UsageError(phrase("web_allow_alone"))
    args = ["sign-out"] if arguments.sign_out else [arguments.user] if arguments.user else []
    args = ["allow", arguments.allow] if arguments.allow else args
    answer = call(arguments.home, "web", args, lambda _: None)
    if answer is None:
        raise UsageError(phrase("wrong_web_stopped"))
    print_answer(answer, as_json=arguments.json)
    # A link for somebody named may be for another person: it works once, so it is theirs to open.
    opens = not (args or arguments.json or arguments.no_open) and desktop.sits_here()
    if opens and _shown(str(answer["data"]["url"]), arguments.home / LOGIN_PAGE):
        say(phrase("web_opens"))
    return 0


def _shown(url: str, page: Path) -> bool:
    try:
        return desktop.show(url, page)
    except OSError:  # the disk is full, say: the link is printed
        return False
