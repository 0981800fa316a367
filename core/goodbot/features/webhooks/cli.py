# SPDX-License-Identifier: Apache-2.0
"""`goodbot webhooks`, and `test`, `key` or `skip` and a NAME: the running goodbot answers."""

from __future__ import annotations

import argparse

from goodbot.api.control import FEATURE, call
from goodbot.base.errors import UsageError
from goodbot.base.printing import print_answer
from goodbot.features.webhooks.plugin import NAME


def main(arguments: argparse.Namespace) -> int:
    """Ask it, and print what it says."""
    words = [NAME, arguments.deed, *([arguments.name] if arguments.name else [])]
    answer = call(arguments.home, FEATURE, words)
    if answer is None:
        raise UsageError("goodbot is not running: start it (`goodbot run`), then ask again")
    print_answer(answer, as_json=arguments.json)
    return 0
