# SPDX-License-Identifier: Apache-2.0
"""`goodbot web`: a link that logs in to the browser, made by the goodbot that runs."""

from __future__ import annotations

import argparse

from goodbot.api.control import call
from goodbot.base.errors import UsageError
from goodbot.base.printing import print_answer


def main(arguments: argparse.Namespace) -> int:
    """Print the link, or sign everybody out."""
    if arguments.user and arguments.sign_out:
        raise UsageError("--sign-out is for everybody: leave --user away")
    args = ["sign-out"] if arguments.sign_out else [arguments.user] if arguments.user else []
    answer = call(arguments.home, "web", args, lambda _: None)
    if answer is None:
        raise UsageError("goodbot is not running: start it (`goodbot run`), then ask again")
    print_answer(answer, as_json=arguments.json)
    return 0
